#include "pipeline/overlay.h"

#include <algorithm>
#include <cmath>

namespace newscaster::pipeline {

namespace {

// Pixels whose distance from the segment is under half the width; the outermost pixel in part.
double coverage(const Position& at, const Position& from, const Position& to, double width) {
    const double dx = to[0] - from[0];
    const double dy = to[1] - from[1];
    const double squared = dx * dx + dy * dy;
    const double along = (at[0] - from[0]) * dx + (at[1] - from[1]) * dy;
    const double share = squared > 0.0 ? std::clamp(along / squared, 0.0, 1.0) : 0.0;
    const double distance = std::hypot(at[0] - from[0] - share * dx, at[1] - from[1] - share * dy);
    return std::clamp(0.5 * width + 0.5 - distance, 0.0, 1.0);
}

// Whole pixels in [low, high] of a side of `size`, as [first, last).
std::array<int, 2> pixels_between(double low, double high, int size) {
    const auto inside = [&](double value) {
        return static_cast<int>(std::clamp(value, 0.0, static_cast<double>(size)));
    };
    return {inside(std::floor(low)), inside(std::ceil(high))};
}

}  // namespace

void draw_line(RgbImage& image, const Position& from, const Position& to, double width,
               const Colour& colour) {
    for (const double value : {from[0], from[1], to[0], to[1]}) {
        if (!std::isfinite(value)) return;
    }
    const double reach = 0.5 * width + 1.0;
    const auto columns = pixels_between(std::min(from[0], to[0]) - reach,
                                        std::max(from[0], to[0]) + reach, image.width);
    const auto rows = pixels_between(std::min(from[1], to[1]) - reach,
                                     std::max(from[1], to[1]) + reach, image.height);
    for (int y = rows[0]; y < rows[1]; ++y) {
        for (int x = columns[0]; x < columns[1]; ++x) {
            const double share = coverage({x + 0.5, y + 0.5}, from, to, width);
            if (share <= 0.0) continue;
            const size_t at = 3 * (static_cast<size_t>(y) * static_cast<size_t>(image.width) +
                                   static_cast<size_t>(x));
            for (size_t c = 0; c < colour.size(); ++c) {
                const double mixed = image.pixels[at + c] * (1.0 - share) + colour.at(c) * share;
                image.pixels[at + c] = static_cast<uint8_t>(std::lround(mixed));
            }
        }
    }
}

void draw_dot(RgbImage& image, const Position& centre, double diameter, const Colour& colour) {
    draw_line(image, centre, centre, diameter, colour);
}

}  // namespace newscaster::pipeline
