// AVX-512 policy (F, BW, DQ, VL): four 128-bit lanes.
#include <immintrin.h>

#include "composite/kernels_impl.h"

namespace newscaster::composite {
namespace {

struct Avx512 {
    using V = __m512i;
    static constexpr int kLanes = 4;

    static V load(const void* p) { return _mm512_loadu_si512(p); }
    static void store(void* p, V v) { _mm512_storeu_si512(p, v); }
    static V splat(int32_t x) { return _mm512_set1_epi32(x); }
    static V splat2(int32_t x, int32_t y) { return _mm512_set4_epi32(y, x, y, x); }
    static V add(V a, V b) { return _mm512_add_epi32(a, b); }
    static V bit_and(V a, V b) { return _mm512_and_si512(a, b); }
    static V bit_or(V a, V b) { return _mm512_or_si512(a, b); }
    template <int N>
    static V shift_left(V a) {
        return _mm512_slli_epi32(a, N);
    }
    template <int N>
    static V shift_right(V a) {
        return _mm512_srai_epi32(a, N);
    }
    static V madd(V a, V b) { return _mm512_madd_epi16(a, b); }
    template <int J>
    static V broadcast(V a) {
        return _mm512_shuffle_epi32(a, static_cast<_MM_PERM_ENUM>(J * 0x55));
    }
    static V swap_neighbours(V a) {
        return _mm512_shuffle_epi32(a, static_cast<_MM_PERM_ENUM>(0xb1));
    }
    static V unpack_low32(V a, V b) { return _mm512_unpacklo_epi32(a, b); }
    static V unpack_high32(V a, V b) { return _mm512_unpackhi_epi32(a, b); }
    static V unpack_low16(V a, V b) { return _mm512_unpacklo_epi16(a, b); }
    static V unpack_high16(V a, V b) { return _mm512_unpackhi_epi16(a, b); }
    static V pack_i32(V a, V b) { return _mm512_packs_epi32(a, b); }
    static V pack_u8(V a, V b) { return _mm512_packus_epi16(a, b); }
    static __m128i load128(const void* p) {
        return _mm_loadu_si128(static_cast<const __m128i*>(p));
    }
    static V join(__m128i a, __m128i b, __m128i c, __m128i d) {
        const __m256i low = _mm256_inserti128_si256(_mm256_castsi128_si256(a), b, 1);
        const __m256i high = _mm256_inserti128_si256(_mm256_castsi128_si256(c), d, 1);
        return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
    }
    static V load_pairs(const int16_t* base, const int32_t* offset) {
        const V pairs = _mm512_broadcast_i32x4(
            _mm_setr_epi8(0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15));
        const V taps = join(load128(base + offset[0]), load128(base + offset[4]),
                            load128(base + offset[8]), load128(base + offset[12]));
        return _mm512_shuffle_epi8(taps, pairs);
    }
    static V quantize(const float* p) {
        // max returns its second operand when the first is NaN.
        const __m512 positive = _mm512_max_ps(_mm512_loadu_ps(p), _mm512_setzero_ps());
        const __m512 clamped = _mm512_min_ps(positive, _mm512_set1_ps(1.0F));
        return _mm512_cvtps_epi32(_mm512_mul_ps(clamped, _mm512_set1_ps(kCropScale)));
    }
    static void store_lanes_interleaved(int16_t* out, V low, V high) {
        const V first = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
        const V second = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
        store(out, _mm512_permutex2var_epi64(low, first, high));
        store(out + 32, _mm512_permutex2var_epi64(low, second, high));
    }
    static void store_low_bytes(uint8_t* out, V v) {
        _mm_storeu_si128(static_cast<__m128i*>(static_cast<void*>(out)), _mm512_cvtepi32_epi8(v));
    }
    static V expand_rgb(const uint8_t* p) {
        const V spread = _mm512_broadcast_i32x4(
            _mm_setr_epi8(0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11, -1));
        return _mm512_shuffle_epi8(
            join(load128(p), load128(p + 12), load128(p + 24), load128(p + 36)), spread);
    }
};

}  // namespace

const Kernels& avx512_kernels() {
    static constexpr Kernels kKernels = KernelSet<Avx512>::make("avx512");
    return kKernels;
}

}  // namespace newscaster::composite
