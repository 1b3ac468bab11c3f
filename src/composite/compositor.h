// Paste-back: face crop -> canvas, inside one 16-aligned ROI, straight into NV12.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/roi_tables.h"
#include "core/stage_types.h"

namespace newscaster::composite {

// Soft mask in crop pixels: 0 within inset_px of the border, then smoothstep over feather_px to 1.
// linear: a line instead, over the pixel centres (0 at the first, 1 at the feather_px-th); in a
// corner 1 - the distance to the inner corner in feather widths, at least 0.
struct SoftMask {
    double inset_px = 0.0;
    double feather_px = 0.0;
    bool linear = false;
    double opacity = 1.0;  // 0..1, times all of it
};

// RGB (full range) -> NV12, BT.709 limited, chroma = 2x2 mean, sited between the four pixels.
// 8-bit integer arithmetic that is exact per 2x2 block, so any even box gives the same bytes as the
// whole picture; within one level of the real-valued conversion. Throws Error(bad_input) unless
// width and height are even. kernel: one of available_kernels(), empty = the best.
[[nodiscard]] Nv12Image rgb_to_nv12(const RgbImage& image, std::string_view kernel = {});

// The other way; chroma is that of the 2x2 block. Converted back, luma and chroma are the same to
// within one level wherever the RGB values were not clipped.
[[nodiscard]] RgbImage nv12_to_rgb(const Nv12Image& image);

// Everything about one (canvas picture, crop transform) pair that does not change per frame:
// ROI, sampling positions, mask, background in RGB and NV12. Immutable; thread-safe.
class PastePlan {
  public:
    // canvas: even size; not kept. crop_to_canvas maps crop pixels to canvas pixels. Throws
    // Error(bad_pack) when the transform is singular, the mask is negative, its opacity above 1, or
    // nothing of the crop falls on the canvas, Error(bad_input) for a kernel that is not one of
    // available_kernels().
    PastePlan(const RgbImage& canvas, const Affine& crop_to_canvas, int crop_size,
              const SoftMask& mask, std::string_view kernel = {});
    ~PastePlan();
    PastePlan(PastePlan&&) noexcept;
    PastePlan& operator=(PastePlan&&) noexcept;

    [[nodiscard]] const Box& roi() const;  // every pasted pixel; all edges multiples of 16 (or the
                                           // canvas edge where the canvas is not)
    [[nodiscard]] const Nv12Image& background() const;

    // Pastes planar RGB f32 [3, crop, crop] (0..1, clamped; NaN counts as 0) into the ROI of an
    // NV12 picture of the canvas size; writes every pixel of the ROI and none outside. Same bytes
    // on every CPU, and the same as paste_rgb() followed by rgb_to_nv12(). Throws Error(runtime)
    // when the crop has another size.
    void paste(std::span<const float> crop, uint8_t* y, int y_stride, uint8_t* uv,
               int uv_stride) const;

    // The same blend into an RGB picture of the canvas size, before any colour conversion.
    // `canvas` must hold the plan's canvas; pixels of mask weight 0 keep their value.
    void paste_rgb(std::span<const float> crop, RgbImage& canvas) const;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

// The tables of the same paste-back for a device: same ROI (or the whole canvas), same bytes.
// Throws like PastePlan.
[[nodiscard]] RoiTables make_roi_tables(const RgbImage& canvas, const Affine& crop_to_canvas,
                                        int crop_size, const SoftMask& mask,
                                        bool whole_canvas = false);

// Instruction sets the kernels were built for and this CPU has, best first: "avx512", "avx2",
// "sse2", "baseline" (plain C++). Tests run each against the others.
[[nodiscard]] std::vector<std::string> available_kernels();

}  // namespace newscaster::composite
