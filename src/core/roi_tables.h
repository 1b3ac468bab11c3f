// Paste-back of a face crop as plain tables: the compositor makes them, a device draws from them.
#pragma once

#include <cstdint>
#include <vector>

namespace newscaster {

// One (canvas picture, crop transform) pair, dense over its region of interest (ROI). Weights are
// two int16 in one int32 (low half: the first tap) in units of 2^-14; those of one pixel add up to
// its share of the crop. composite/kernels.h has the arithmetic.
struct RoiTables {
    int width = 0;   // of the ROI; even
    int height = 0;  // even
    int crop_size = 0;
    // Without rotation and shear: rows and columns are sampled one after the other.
    bool separable = false;

    std::vector<uint32_t> background;  // per pixel R | G << 8 | B << 16

    std::vector<int32_t> column_tap;      // separable, per column: the left one of two crop columns
    std::vector<int32_t> column_weights;  // separable, per column
    std::vector<int32_t> row_tap;         // separable, per row: the upper one of two crop rows
    std::vector<int32_t> mix_weights;     // separable, per pixel: upper and lower row

    std::vector<int32_t> tap;    // else per pixel: row * crop_size + column, upper left of four
    std::vector<int32_t> upper;  // per pixel: weights of the two upper taps
    std::vector<int32_t> lower;  // per pixel
};

}  // namespace newscaster
