// Paste plans of an avatar made of a clip: made when a frame is drawn, a few are kept.
#pragma once

#include <cstdint>
#include <filesystem>
#include <list>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "avatar/avatar.h"
#include "composite/compositor.h"

namespace newscaster::pipeline {

// Thread-safe.
class ClipPlans {
  public:
    // The avatar's canvases are NV12.
    ClipPlans(const avatar::Avatar& avatar, int crop_size, const composite::SoftMask& mask);

    // Throws Error(io) when the canvas cannot be read, and like composite::PastePlan.
    [[nodiscard]] std::shared_ptr<const composite::PastePlan> plan(int64_t source);

  private:
    using Plan = std::shared_ptr<const composite::PastePlan>;

    std::filesystem::path file_;
    int width_;
    int height_;
    std::vector<Affine> crop_to_canvas_;
    int crop_size_;
    composite::SoftMask mask_;
    std::vector<double> opacity_;
    std::mutex mutex_;
    std::list<std::pair<int64_t, Plan>> kept_;  // latest first
};

}  // namespace newscaster::pipeline
