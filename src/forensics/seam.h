// What a face box that was drawn anew leaves behind at its border.
#pragma once

#include <array>
#include <cstdint>

#include "core/stage_types.h"
#include "media/video_source.h"

namespace newscaster::forensics {

struct SeamMetrics {
    // CIEDE2000 between neighbouring pixels across the border, mean and largest, and what it is
    // between neighbours just inside and just outside: a seam shows where the first is larger.
    double across_mean = 0.0;
    double across_max = 0.0;
    double beside_mean = 0.0;
    // Mean |luma - reference| by distance from the border: 8 pixels inside to 8 outside.
    static constexpr int kReach = 8;
    std::array<double, static_cast<size_t>(2 * kReach)> halo{};
    // Shift of the chroma planes against the reference's, less that of the luma: luma pixels.
    double chroma_phase_x = 0.0;
    double chroma_phase_y = 0.0;
};

// Sides of the box that are sides of the picture have no border. Both pictures of one size.
[[nodiscard]] SeamMetrics inspect_seam(const media::VideoPicture& reference,
                                       const media::VideoPicture& picture, const Box& box);

}  // namespace newscaster::forensics
