// How much two pictures differ, on luma.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/stage_types.h"

namespace newscaster::bench {

// A part of a frame's luma plane.
struct Luma {
    Box box;  // in the canvas
    std::vector<uint8_t> pixels;

    [[nodiscard]] uint8_t at(int x, int y) const {
        return pixels[static_cast<size_t>(y - box.y0) * static_cast<size_t>(box.width()) +
                      static_cast<size_t>(x - box.x0)];
    }
};

// Peak signal-to-noise ratio over `part`, peak 255, with `area` pixels in all: those outside the
// part count as equal. nullopt when nothing differs. part lies inside both pictures.
[[nodiscard]] std::optional<double> psnr_db(const Luma& a, const Luma& b, const Box& part,
                                            double area);

// Structural similarity (Wang et al. 2004: Gaussian 11 x 11, sigma 1.5, K1 0.01, K2 0.03): mean
// over the windows inside `part`, and over `area` pixels in all, where the others count as 1.
[[nodiscard]] double ssim(const Luma& a, const Luma& b, const Box& part, double area);

}  // namespace newscaster::bench
