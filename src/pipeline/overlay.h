// Marks on pictures for people: dots and lines of a width. Private to this room.
#pragma once

#include <array>
#include <cstdint>

#include "core/stage_types.h"

namespace newscaster::pipeline {

using Colour = std::array<uint8_t, 3>;
using Position = std::array<double, 2>;  // x, y in picture pixels; (0, 0): the first one's corner

// A round spot; what lies beyond the picture is left out. NaN draws nothing.
void draw_dot(RgbImage& image, const Position& centre, double diameter, const Colour& colour);

// A line with round ends.
void draw_line(RgbImage& image, const Position& from, const Position& to, double width,
               const Colour& colour);

}  // namespace newscaster::pipeline
