// Pictures of a report: parts of frames, enlarged, side by side, and what differs.
#pragma once

#include <vector>

#include "core/stage_types.h"

namespace newscaster::forensics {

// Every pixel `times` times in both directions: what is there, without a filter's opinion.
[[nodiscard]] RgbImage enlarged(const RgbImage& image, int times);

// Means of square blocks, so that no side is longer than `longest`; small pictures stay.
[[nodiscard]] RgbImage reduced(const RgbImage& image, int longest);

// 128 + times * (picture - reference) per channel: grey where nothing differs.
[[nodiscard]] RgbImage difference_map(const RgbImage& reference, const RgbImage& picture,
                                      int times);

// Rows of cells, all of one size, with lines between them.
[[nodiscard]] RgbImage montage(const std::vector<std::vector<RgbImage>>& rows);

}  // namespace newscaster::forensics
