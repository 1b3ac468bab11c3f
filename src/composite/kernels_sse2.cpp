// SSE2 policy, which every x86-64 CPU has: one 128-bit lane.
#include <emmintrin.h>

#include "composite/kernels_impl.h"

namespace newscaster::composite {
namespace {

struct Sse2 {
    using V = __m128i;
    static constexpr int kLanes = 1;

    static V load(const void* p) { return _mm_loadu_si128(static_cast<const V*>(p)); }
    static void store(void* p, V v) { _mm_storeu_si128(static_cast<V*>(p), v); }
    static V splat(int32_t x) { return _mm_set1_epi32(x); }
    static V splat2(int32_t x, int32_t y) { return _mm_setr_epi32(x, y, x, y); }
    static V add(V a, V b) { return _mm_add_epi32(a, b); }
    static V bit_and(V a, V b) { return _mm_and_si128(a, b); }
    static V bit_or(V a, V b) { return _mm_or_si128(a, b); }
    template <int N>
    static V shift_left(V a) {
        return _mm_slli_epi32(a, N);
    }
    template <int N>
    static V shift_right(V a) {
        return _mm_srai_epi32(a, N);
    }
    static V madd(V a, V b) { return _mm_madd_epi16(a, b); }
    template <int J>
    static V broadcast(V a) {
        return _mm_shuffle_epi32(a, J * 0x55);
    }
    static V swap_neighbours(V a) { return _mm_shuffle_epi32(a, 0xb1); }
    static V unpack_low32(V a, V b) { return _mm_unpacklo_epi32(a, b); }
    static V unpack_high32(V a, V b) { return _mm_unpackhi_epi32(a, b); }
    static V unpack_low16(V a, V b) { return _mm_unpacklo_epi16(a, b); }
    static V unpack_high16(V a, V b) { return _mm_unpackhi_epi16(a, b); }
    static V pack_i32(V a, V b) { return _mm_packs_epi32(a, b); }
    static V pack_u8(V a, V b) { return _mm_packus_epi16(a, b); }
    static V load_pairs(const int16_t* base, const int32_t* offset) {
        const V taps = load(base + *offset);
        return _mm_unpacklo_epi16(taps, _mm_srli_si128(taps, 8));
    }
    static V quantize(const float* p) {
        // max returns its second operand when the first is NaN.
        const __m128 positive = _mm_max_ps(_mm_loadu_ps(p), _mm_setzero_ps());
        const __m128 clamped = _mm_min_ps(positive, _mm_set1_ps(1.0F));
        return _mm_cvtps_epi32(_mm_mul_ps(clamped, _mm_set1_ps(kCropScale)));
    }
    static void store_lanes_interleaved(int16_t* out, V low, V high) {
        store(out, low);
        store(out + 8, high);
    }
    static void store_low_bytes(uint8_t* out, V v) {
        const V half = _mm_packs_epi32(v, v);
        const int32_t bytes = _mm_cvtsi128_si32(_mm_packus_epi16(half, half));
        std::memcpy(out, &bytes, sizeof(bytes));
    }
    static V expand_rgb(const uint8_t* p) {
        const auto pixel = [p](int i) {
            return p[3 * i] | (p[3 * i + 1] << 8) | (p[3 * i + 2] << 16);
        };
        return _mm_setr_epi32(pixel(0), pixel(1), pixel(2), pixel(3));
    }
};

}  // namespace

const Kernels& sse2_kernels() {
    static constexpr Kernels kKernels = KernelSet<Sse2>::make("sse2");
    return kKernels;
}

}  // namespace newscaster::composite
