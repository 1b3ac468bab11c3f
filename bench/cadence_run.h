// One session with a cadence, its pictures of the face and what it cost.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "forensics/picture_metrics.h"
#include "newscaster/engine.h"
#include "pipeline/loaded_avatar.h"

namespace newscaster::bench {

// A part of a frame's luma plane.
struct Luma {
    Box box;  // in the canvas
    std::vector<uint8_t> pixels;

    [[nodiscard]] forensics::Plane plane() const {
        return {pixels.data(), box.width(), box.height()};
    }
    // A box of the canvas in this part.
    [[nodiscard]] Box within(const Box& part) const {
        return {part.x0 - box.x0, part.y0 - box.y0, part.x1 - box.x0, part.y1 - box.y0};
    }
};

struct CadenceRun {
    std::vector<Luma> faces;
    std::vector<std::vector<float>> keypoints;  // driving [K*3]
    std::vector<CadenceFrame> plan;
    SessionStats stats;
    double wall_s = 0.0;
    double core_s = 0.0;         // of all threads of this process
    double foreign_cores = 0.0;  // what other processes used meanwhile
};

// Draws `samples` without encoding. avatar: one source frame.
CadenceRun run_cadence(const Engine& engine, const AvatarPtr& avatar,
                       const std::vector<float>& samples, const CadenceOptions& cadence);

// Frames in between against the same frames of the dense run: PSNR (mean, worst and where) of
// canvas, mouth and eyes, SSIM of canvas and mouth, and the turns of lips and lids that are not
// keyframes. Throws Error(runtime) when a keyframe differs from the dense run.
[[nodiscard]] nlohmann::json compare_cadence(const CadenceRun& dense, const CadenceRun& run,
                                             const pack::Manifest& manifest, const Affine& crop,
                                             double canvas_area);

}  // namespace newscaster::bench
