// The kernels, written once over a vector policy S. Each kernels_<isa>.cpp instantiates them with
// its own policy from an unnamed namespace, so no code built with wider instructions can be picked
// by the linker for another CPU; for the same reason nothing inline of the standard library is
// used.
//
// S: V = S::kLanes lanes of 128 bits. Within a group of 4 * kLanes pixels, vector j (0..3) carries
// pixels j, j + 4, j + 8, ...: one per lane; packing the four vectors restores the pixel order.
#pragma once

#include <cstdint>
#include <cstring>

#include "composite/kernels.h"

namespace newscaster::composite {

// BT.709, full-range RGB to limited-range YCbCr, in units of 2^-15:
// Y = 16 + 219/255 (0.2126 R + 0.7152 G + 0.0722 B), Cb = 128 + 224/255 (B - Y') / 1.8556,
// Cr = 128 + 224/255 (R - Y') / 1.5748 (ITU-R BT.709-6, 3.2 to 3.5). Each chroma row sums to
// zero, so greys have no colour; the luma row sums to round(2^15 * 219/255).
namespace bt709 {
inline constexpr int kYr = 5983, kYg = 20127, kYb = 2032;
inline constexpr int kUr = -3298, kUg = -11094, kUb = 14392;
inline constexpr int kVr = 14392, kVg = -13072, kVb = -1320;
inline constexpr int kLumaShift = 15;
inline constexpr int kChromaShift = 17;  // of the sum of four pixels
inline constexpr int32_t kLumaBias = (16 << kLumaShift) + (1 << (kLumaShift - 1));
inline constexpr int32_t kChromaBias = (128 << kChromaShift) + (1 << (kChromaShift - 1));
}  // namespace bt709

constexpr int32_t pair16(int low, int high) {
    return static_cast<int32_t>((static_cast<uint32_t>(low) & 0xffffU) |
                                (static_cast<uint32_t>(high) << 16U));
}

template <class S>
struct KernelSet {
    using V = typename S::V;
    static constexpr int kGroup = 4 * S::kLanes;
    static constexpr int kBytes = 16 * S::kLanes;

    static void quantize_group(const float* r, const float* g, const float* b, int16_t* out) {
        const V rg = S::bit_or(S::quantize(r), S::template shift_left<16>(S::quantize(g)));
        const V b0 = S::quantize(b);
        S::store_lanes_interleaved(out, S::unpack_low32(rg, b0), S::unpack_high32(rg, b0));
    }

    static void quantize_row(const float* r, const float* g, const float* b, int count,
                             int16_t* crop16) {
        int x = 0;
        for (; x + kGroup <= count; x += kGroup) {
            quantize_group(r + x, g + x, b + x, crop16 + 4 * x);
        }
        if (x == count) return;
        const auto rest = static_cast<size_t>(count - x);
        float in[3][kGroup] = {};
        int16_t out[4 * kGroup];
        std::memcpy(in[0], r + x, rest * sizeof(float));
        std::memcpy(in[1], g + x, rest * sizeof(float));
        std::memcpy(in[2], b + x, rest * sizeof(float));
        quantize_group(in[0], in[1], in[2], out);
        std::memcpy(crop16 + 4 * x, out, rest * 4 * sizeof(int16_t));
    }

    static void store_group(V a, V b, V c, V d, uint8_t* rgbx) {
        const V ab = S::pack_i32(S::template shift_right<kBlendShift>(a),
                                 S::template shift_right<kBlendShift>(b));
        const V cd = S::pack_i32(S::template shift_right<kBlendShift>(c),
                                 S::template shift_right<kBlendShift>(d));
        S::store(rgbx, S::pack_u8(ab, cd));
    }

    // Weighted sum of the four taps of pixels j, j + 4, ...
    template <int J>
    static V taps(const SampleRow& row, int x, V upper, V lower) {
        const int32_t* offset = row.offset + (x - row.span.begin) + J;
        const V top = S::load_pairs(row.crop, offset);
        const V bottom = S::load_pairs(row.crop + row.crop_stride, offset);
        return S::add(S::madd(top, S::template broadcast<J>(upper)),
                      S::madd(bottom, S::template broadcast<J>(lower)));
    }

    template <bool kPartial>
    static void sample_span(const SampleRow& row, int begin, int end, const int32_t*& bias,
                            uint8_t* rgbx) {
        V b0 = S::splat(kBlendRounding), b1 = b0, b2 = b0, b3 = b0;
        for (int x = begin; x < end; x += kGroup) {
            if constexpr (kPartial) load_bias(bias, b0, b1, b2, b3);
            const V upper = S::load(row.upper + (x - row.span.begin));
            const V lower = S::load(row.lower + (x - row.span.begin));
            store_group(S::add(taps<0>(row, x, upper, lower), b0),
                        S::add(taps<1>(row, x, upper, lower), b1),
                        S::add(taps<2>(row, x, upper, lower), b2),
                        S::add(taps<3>(row, x, upper, lower), b3), rgbx + 4 * x);
        }
    }

    static void load_bias(const int32_t*& bias, V& b0, V& b1, V& b2, V& b3) {
        b0 = S::load(bias);
        b1 = S::load(bias + kGroup);
        b2 = S::load(bias + 2 * kGroup);
        b3 = S::load(bias + 3 * kGroup);
        bias += 4 * kGroup;
    }

    static void sample_row(const SampleRow& row, uint8_t* rgbx) {
        const int32_t* bias = row.bias;
        sample_span<true>(row, row.span.begin, row.span.full_begin, bias, rgbx);
        sample_span<false>(row, row.span.full_begin, row.span.full_end, bias, rgbx);
        sample_span<true>(row, row.span.full_end, row.span.end, bias, rgbx);
    }

    template <int J>
    static V column_taps(const int16_t* row, const int32_t* offset, V weights) {
        const V sum = S::madd(S::load_pairs(row, offset + J), S::template broadcast<J>(weights));
        return S::template shift_right<kWeightBits>(S::add(sum, S::splat(1 << (kWeightBits - 1))));
    }

    static void resample_columns(const int16_t* crop_row, const int32_t* offset,
                                 const int32_t* weights, int begin, int end, int16_t* out) {
        for (int x = begin; x < end; x += kGroup) {
            const V w = S::load(weights + x);
            const V a = column_taps<0>(crop_row, offset + x, w);
            const V b = column_taps<1>(crop_row, offset + x, w);
            const V c = column_taps<2>(crop_row, offset + x, w);
            const V d = column_taps<3>(crop_row, offset + x, w);
            S::store(out + 4 * x, S::pack_i32(a, b));
            S::store(out + 4 * x + 2 * kGroup, S::pack_i32(c, d));
        }
    }

    template <bool kPartial>
    static void mix_span(const MixRow& row, int begin, int end, const int32_t*& weights,
                         const int32_t*& bias, uint8_t* rgbx) {
        V b0 = S::splat(kBlendRounding), b1 = b0, b2 = b0, b3 = b0;
        V w0 = S::splat(row.full_weights), w1 = w0, w2 = w0, w3 = w0;
        for (int x = begin; x < end; x += kGroup) {
            if constexpr (kPartial) {
                load_bias(bias, b0, b1, b2, b3);
                const V w = S::load(weights);
                weights += kGroup;
                w0 = S::template broadcast<0>(w);
                w1 = S::template broadcast<1>(w);
                w2 = S::template broadcast<2>(w);
                w3 = S::template broadcast<3>(w);
            }
            const V upper0 = S::load(row.upper + 4 * x);
            const V upper1 = S::load(row.upper + 4 * x + 2 * kGroup);
            const V lower0 = S::load(row.lower + 4 * x);
            const V lower1 = S::load(row.lower + 4 * x + 2 * kGroup);
            store_group(S::add(S::madd(S::unpack_low16(upper0, lower0), w0), b0),
                        S::add(S::madd(S::unpack_high16(upper0, lower0), w1), b1),
                        S::add(S::madd(S::unpack_low16(upper1, lower1), w2), b2),
                        S::add(S::madd(S::unpack_high16(upper1, lower1), w3), b3), rgbx + 4 * x);
        }
    }

    static void mix_row(const MixRow& row, uint8_t* rgbx) {
        const int32_t* weights = row.weights;
        const int32_t* bias = row.bias;
        mix_span<true>(row, row.span.begin, row.span.full_begin, weights, bias, rgbx);
        mix_span<false>(row, row.span.full_begin, row.span.full_end, weights, bias, rgbx);
        mix_span<true>(row, row.span.full_end, row.span.end, weights, bias, rgbx);
    }

    // red_blue, green: [R, B] and [G, 0] as int16 pairs.
    static V luma(V red_blue, V green) {
        const V sum = S::add(S::madd(red_blue, S::splat(pair16(bt709::kYr, bt709::kYb))),
                             S::madd(green, S::splat(pair16(bt709::kYg, 0))));
        return S::template shift_right<bt709::kLumaShift>(S::add(sum, S::splat(bt709::kLumaBias)));
    }

    static void nv12_group(const uint8_t* top, const uint8_t* bottom, uint8_t* y_top,
                           uint8_t* y_bottom, uint8_t* uv) {
        const V mask = S::splat(0x00ff00ff);
        const V p0 = S::load(top);
        const V p1 = S::load(bottom);
        const V rb0 = S::bit_and(p0, mask);
        const V rb1 = S::bit_and(p1, mask);
        const V g0 = S::bit_and(S::template shift_right<8>(p0), mask);
        const V g1 = S::bit_and(S::template shift_right<8>(p1), mask);
        S::store_low_bytes(y_top, luma(rb0, g0));
        S::store_low_bytes(y_bottom, luma(rb1, g1));
        // Sums of 2x2 pixels appear in both 32-bit halves: one becomes Cb, the other Cr.
        V rb = S::add(rb0, rb1);
        V g = S::add(g0, g1);
        rb = S::add(rb, S::swap_neighbours(rb));
        g = S::add(g, S::swap_neighbours(g));
        const V rb_weights =
            S::splat2(pair16(bt709::kUr, bt709::kUb), pair16(bt709::kVr, bt709::kVb));
        const V g_weights = S::splat2(pair16(bt709::kUg, 0), pair16(bt709::kVg, 0));
        const V sum = S::add(S::madd(rb, rb_weights), S::madd(g, g_weights));
        S::store_low_bytes(uv, S::template shift_right<bt709::kChromaShift>(
                                   S::add(sum, S::splat(bt709::kChromaBias))));
    }

    static void rgbx_to_nv12(const uint8_t* top, const uint8_t* bottom, int width, uint8_t* y_top,
                             uint8_t* y_bottom, uint8_t* uv) {
        int x = 0;
        for (; x + kGroup <= width; x += kGroup) {
            nv12_group(top + 4 * x, bottom + 4 * x, y_top + x, y_bottom + x, uv + x);
        }
        if (x == width) return;
        const auto rest = static_cast<size_t>(width - x);
        uint8_t in[2][kBytes] = {};
        uint8_t out[3][kGroup];
        std::memcpy(in[0], top + 4 * x, 4 * rest);
        std::memcpy(in[1], bottom + 4 * x, 4 * rest);
        nv12_group(in[0], in[1], out[0], out[1], out[2]);
        std::memcpy(y_top + x, out[0], rest);
        std::memcpy(y_bottom + x, out[1], rest);
        std::memcpy(uv + x, out[2], rest);
    }

    static void rgb_to_rgbx(const uint8_t* rgb, int width, uint8_t* rgbx) {
        int x = 0;
        // expand_rgb may read 4 bytes past its group.
        for (; 3 * (x + kGroup) + 4 <= 3 * width; x += kGroup) {
            S::store(rgbx + 4 * x, S::expand_rgb(rgb + 3 * x));
        }
        for (; x < width; ++x) {
            rgbx[4 * x] = rgb[3 * x];
            rgbx[4 * x + 1] = rgb[3 * x + 1];
            rgbx[4 * x + 2] = rgb[3 * x + 2];
            rgbx[4 * x + 3] = 0;
        }
    }

    static constexpr Kernels make(std::string_view name) {
        return {name,    kGroup,       quantize_row, sample_row, resample_columns,
                mix_row, rgbx_to_nv12, rgb_to_rgbx};
    }
};

}  // namespace newscaster::composite
