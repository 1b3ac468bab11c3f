// Row kernels of the compositor, built once per instruction set from kernels_impl.h.
//
// Pixels are handled in groups of `group` (4, 8 or 16); every row buffer and table is padded to
// whole groups. All arithmetic after the quantisation of the crop is integer, so every kernel set
// yields the same bytes.
//
// Formats:
//   crop16  interleaved R, G, B, 0 as int16, value * kCropScale (0..32640)
//   weights two int16 in one int32 (low half: the first tap), fixed point 1.0 = kWeightOne
//   rgbx    interleaved R, G, B, 0 as uint8
//   bias    int32 R, G, B, 0 per pixel: background * (kWeightOne - alpha) * 128 plus rounding
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace newscaster::composite {

inline constexpr int kWeightBits = 14;
inline constexpr int32_t kWeightOne = 1 << kWeightBits;
inline constexpr int kCropBits = 7;  // crop16 = 8-bit level << 7
inline constexpr float kCropScale = 255.0F * (1 << kCropBits);
inline constexpr int kBlendShift = kWeightBits + kCropBits;
inline constexpr int32_t kBlendRounding = 1 << (kBlendShift - 1);

// Columns of a row, relative to the ROI, all multiples of the group: [begin, end) is written,
// [full_begin, full_end) has full alpha everywhere.
struct RowSpan {
    int begin = 0;
    int full_begin = 0;
    int full_end = 0;
    int end = 0;
    [[nodiscard]] bool empty() const { return begin >= end; }
};

// Four-tap sampling of one row. offset, upper and lower start at column span.begin; bias holds the
// partial groups only.
struct SampleRow {
    RowSpan span;
    const int16_t* crop = nullptr;
    int64_t crop_stride = 0;          // int16 elements from one crop row to the next
    const int32_t* offset = nullptr;  // int16 elements from `crop` to the upper left tap
    const int32_t* upper = nullptr;   // weights of the two upper taps, times alpha
    const int32_t* lower = nullptr;   // weights of the two lower taps, times alpha
    const int32_t* bias = nullptr;
};

// Vertical half of separable sampling: mixes two rows made by resample_columns.
struct MixRow {
    RowSpan span;
    const int16_t* upper = nullptr;
    const int16_t* lower = nullptr;
    int32_t full_weights = 0;          // pair for pixels of full alpha
    const int32_t* weights = nullptr;  // pairs times alpha; like bias, of the partial groups only
    const int32_t* bias = nullptr;
};

struct Kernels {
    std::string_view name;
    int group = 0;

    // Planar f32 -> crop16; NaN and negative values become 0, values above 1 become 1.
    void (*quantize_row)(const float* r, const float* g, const float* b, int count,
                         int16_t* crop16);
    void (*sample_row)(const SampleRow& row, uint8_t* rgbx);
    // Horizontal half of separable sampling of columns [begin, end); the result is in the kernel
    // set's own pixel order, for mix_row only.
    void (*resample_columns)(const int16_t* crop_row, const int32_t* offset, const int32_t* weights,
                             int begin, int end, int16_t* out);
    void (*mix_row)(const MixRow& row, uint8_t* rgbx);
    // Two rows of width (even) pixels -> two luma rows, one row of width/2 Cb, Cr pairs. Reads
    // only `width` pixels and writes only `width` bytes per plane.
    void (*rgbx_to_nv12)(const uint8_t* top, const uint8_t* bottom, int width, uint8_t* y_top,
                         uint8_t* y_bottom, uint8_t* uv);
    void (*rgb_to_rgbx)(const uint8_t* rgb, int width, uint8_t* rgbx);

    // Place of pixel `column`'s bias entry (in units of 4 int32) within its row of whole groups.
    [[nodiscard]] int bias_slot(int column) const {
        const int in_group = column % group;
        return column - in_group + (in_group % 4) * (group / 4) + in_group / 4;
    }
};

const Kernels& portable_kernels();
const Kernels& sse2_kernels();    // x86-64 only, like the two below
const Kernels& avx2_kernels();    // call only where the CPU has AVX2
const Kernels& avx512_kernels();  // call only where the CPU has AVX-512 F, BW, DQ and VL

// Sets this CPU can run, best first.
[[nodiscard]] std::vector<const Kernels*> runnable_kernels();
// The best set for an empty name; throws Error(bad_input) naming those that exist.
[[nodiscard]] const Kernels& find_kernels(std::string_view name);

}  // namespace newscaster::composite
