// What the stage benchmarks work on: the bundled pack and avatar, and a real recording taken
// through the stages before the one that is measured.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/stage_types.h"
#include "newscaster/types.h"
#include "pipeline/engine_impl.h"
#include "pipeline/loaded_avatar.h"

namespace newscaster::bench {

// Not thread-safe. Everything is made at first use.
class StageFixture {
  public:
    struct Renderer {
        std::shared_ptr<const Engine::Impl> engine;
        std::unique_ptr<pipeline::LoadedAvatar> avatar;
    };

    [[nodiscard]] static std::filesystem::path speech_file();
    // Options of an engine on the bundled pack, without a cache.
    [[nodiscard]] static EngineOptions engine_options();

    // An engine whose graphs are made for this many frames at the same time. precision: "f32", ...
    [[nodiscard]] const Renderer& renderer(const std::string& precision, int frames_in_flight);
    [[nodiscard]] const Engine::Impl& analysis() { return *renderer("f32", 1).engine; }

    // The recording at the pack's sample rate.
    [[nodiscard]] const std::vector<float>& samples();
    // Its driving keypoints, frame by frame.
    [[nodiscard]] const std::vector<DrivingFrame>& driving();
    // The first second of the finished video, then the same backwards: a loop without a jump.
    [[nodiscard]] const std::vector<VideoFramePtr>& video();

  private:
    std::map<std::pair<std::string, int>, Renderer> renderers_;
    std::vector<float> samples_;
    std::vector<DrivingFrame> driving_;
    std::vector<VideoFramePtr> video_;
};

}  // namespace newscaster::bench
