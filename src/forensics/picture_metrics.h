// How much two pictures differ, on one 8-bit plane.
#pragma once

#include <cstdint>
#include <optional>

#include "core/stage_types.h"

namespace newscaster::forensics {

// A view of a plane; rows follow each other without gaps.
struct Plane {
    const uint8_t* pixels = nullptr;
    int width = 0;
    int height = 0;

    [[nodiscard]] const uint8_t* row(int y) const {
        return pixels + static_cast<size_t>(y) * static_cast<size_t>(width);
    }
};

[[nodiscard]] inline double area_of(const Box& box) {
    return static_cast<double>(box.width()) * box.height();
}

// Peak signal-to-noise ratio over `part`, peak 255: 10 log10(255^2 / mean squared difference), with
// `area` pixels in all, where those outside the part count as equal. nullopt when nothing differs.
// part lies inside both planes.
[[nodiscard]] std::optional<double> psnr_db(const Plane& a, const Plane& b, const Box& part,
                                            double area);

// Structural similarity (Wang et al. 2004: Gaussian 11 x 11, sigma 1.5, K1 0.01, K2 0.03): mean
// over the windows that lie inside `part`, and over `area` pixels in all, where the others count as
// 1. 1 for parts smaller than a window.
[[nodiscard]] double ssim(const Plane& a, const Plane& b, const Box& part, double area);

}  // namespace newscaster::forensics
