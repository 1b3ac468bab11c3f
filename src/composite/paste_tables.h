// Everything the paste-back of one plan looks up: where each canvas pixel samples the crop, how
// much of it is seen, and what of the background shows through.
#pragma once

#include <cstdint>
#include <vector>

#include "composite/compositor.h"
#include "composite/kernels.h"
#include "newscaster/error.h"

namespace newscaster::composite {

// Mask weight 0..1 at crop position (u, v), pixel centres at +0.5: distance to the nearest border
// through smoothstep t*t*(3-2t), t = (distance - inset_px) / feather_px; a step when feather_px
// is 0. Without the opacity.
[[nodiscard]] double mask_weight(const SoftMask& mask, int crop_size, double u, double v);

struct PasteTables {
    Box roi;
    int columns = 0;         // ROI width padded to whole groups
    bool separable = false;  // the transform has no rotation and no shear
    int crop_row_begin = 0;  // crop rows that any pixel samples
    int crop_row_end = 0;

    std::vector<RowSpan> spans;  // per pair of ROI rows

    // Per ROI row: where its partial groups start, in pixels (bias: 4 int32 each).
    std::vector<int64_t> partial_start;
    std::vector<int32_t> bias;

    // General transforms; per ROI row, from span.begin on.
    std::vector<int64_t> sample_start;
    std::vector<int32_t> offset;
    std::vector<int32_t> upper;
    std::vector<int32_t> lower;

    // Separable transforms.
    std::vector<int32_t> column_offset;   // per ROI column
    std::vector<int32_t> column_weights;  // per ROI column
    std::vector<int32_t> row_source;      // per ROI row: the upper of the two crop rows
    std::vector<int32_t> row_weights;     // per ROI row, at full alpha
    std::vector<int32_t> mix_weights;     // times alpha; like bias
};

// int16 elements from one quantised crop row to the next; 64 bytes of padding keep the rows of
// power-of-two crops out of each other's cache sets.
[[nodiscard]] constexpr int64_t crop_stride(int crop_size) {
    return 4 * int64_t{crop_size} + 32;
}

// Throws Error(code) unless width and height are even and there are three bytes a pixel.
void require_canvas(const RgbImage& image, ErrorCode code);

// Throws Error(bad_pack), see PastePlan.
[[nodiscard]] PasteTables make_paste_tables(const RgbImage& canvas, const Affine& crop_to_canvas,
                                            int crop_size, const SoftMask& mask,
                                            const Kernels& kernels);

}  // namespace newscaster::composite
