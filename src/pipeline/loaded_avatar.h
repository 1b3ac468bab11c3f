// An avatar made ready for an engine: tensors on the device, canvases converted, paste plans.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "avatar/avatar.h"
#include "composite/compositor.h"
#include "motion/composer.h"
#include "motion/condition_rows.h"
#include "newscaster/engine.h"
#include "pipeline/clip_plans.h"
#include "pipeline/engine_impl.h"
#include "warp/warp_stage.h"

namespace newscaster::pipeline {

class LoadedAvatar final : public Avatar {
  public:
    LoadedAvatar(std::shared_ptr<const Engine::Impl> engine, const std::filesystem::path& folder);

    [[nodiscard]] const std::string& name() const override { return name_; }
    [[nodiscard]] int width() const override { return width_; }
    [[nodiscard]] int height() const override { return height_; }
    [[nodiscard]] int64_t source_frames() const override {
        return static_cast<int64_t>(composer_->sources().size());
    }

    [[nodiscard]] const Engine::Impl* engine() const { return engine_.get(); }
    [[nodiscard]] const device::SourceTensors& sources() const { return sources_; }
    // Kept in memory for pictures; made when asked for where the canvases are a clip's, which
    // keeps the latest. Thread-safe.
    [[nodiscard]] std::shared_ptr<const composite::PastePlan> plan(int64_t source) const {
        return plans_.empty() ? clip_->plan(source) : plans_[static_cast<size_t>(source)];
    }
    // Paste-back on the device; nullptr where the device has none or frames are not batched.
    [[nodiscard]] const device::RoiPaster* paster(int64_t source) const {
        return pasters_.empty() ? nullptr : pasters_[static_cast<size_t>(source)].get();
    }
    [[nodiscard]] const motion::Composer& composer() const { return *composer_; }
    // What the motion generator asks of the avatar.
    [[nodiscard]] motion::AvatarConditions conditions() const;
    // Scale of the first source frame.
    [[nodiscard]] double scale() const;

  private:
    void add_plans(const avatar::Avatar& avatar, const composite::SoftMask& mask);
    void add_plan(const RgbImage& canvas, const Affine& crop_to_canvas,
                  const composite::SoftMask& mask);

    std::shared_ptr<const Engine::Impl> engine_;
    std::string name_;
    int width_ = 0;
    int height_ = 0;
    device::SourceTensors sources_;
    std::vector<std::shared_ptr<const composite::PastePlan>> plans_;  // empty for a clip
    std::unique_ptr<ClipPlans> clip_;
    std::vector<std::unique_ptr<device::RoiPaster>> pasters_;  // empty or one per source frame
    std::unique_ptr<motion::Composer> composer_;
    std::vector<std::vector<float>> eye_open_;
    std::vector<std::vector<float>> eye_ball_;
};

// The manifest of the pack that the avatar was loaded for.
[[nodiscard]] const pack::Manifest& manifest_of(const Avatar& avatar);

}  // namespace newscaster::pipeline
