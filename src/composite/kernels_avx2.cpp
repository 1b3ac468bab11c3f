// AVX2 policy: two 128-bit lanes.
#include <immintrin.h>

#include "composite/kernels_impl.h"

namespace newscaster::composite {
namespace {

struct Avx2 {
    using V = __m256i;
    static constexpr int kLanes = 2;

    static V load(const void* p) { return _mm256_loadu_si256(static_cast<const V*>(p)); }
    static void store(void* p, V v) { _mm256_storeu_si256(static_cast<V*>(p), v); }
    static V splat(int32_t x) { return _mm256_set1_epi32(x); }
    static V splat2(int32_t x, int32_t y) { return _mm256_setr_epi32(x, y, x, y, x, y, x, y); }
    static V add(V a, V b) { return _mm256_add_epi32(a, b); }
    static V bit_and(V a, V b) { return _mm256_and_si256(a, b); }
    static V bit_or(V a, V b) { return _mm256_or_si256(a, b); }
    template <int N>
    static V shift_left(V a) {
        return _mm256_slli_epi32(a, N);
    }
    template <int N>
    static V shift_right(V a) {
        return _mm256_srai_epi32(a, N);
    }
    static V madd(V a, V b) { return _mm256_madd_epi16(a, b); }
    template <int J>
    static V broadcast(V a) {
        return _mm256_shuffle_epi32(a, J * 0x55);
    }
    static V swap_neighbours(V a) { return _mm256_shuffle_epi32(a, 0xb1); }
    static V unpack_low32(V a, V b) { return _mm256_unpacklo_epi32(a, b); }
    static V unpack_high32(V a, V b) { return _mm256_unpackhi_epi32(a, b); }
    static V unpack_low16(V a, V b) { return _mm256_unpacklo_epi16(a, b); }
    static V unpack_high16(V a, V b) { return _mm256_unpackhi_epi16(a, b); }
    static V pack_i32(V a, V b) { return _mm256_packs_epi32(a, b); }
    static V pack_u8(V a, V b) { return _mm256_packus_epi16(a, b); }
    static __m128i load128(const void* p) {
        return _mm_loadu_si128(static_cast<const __m128i*>(p));
    }
    static V join(__m128i low, __m128i high) {
        return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
    }
    static V load_pairs(const int16_t* base, const int32_t* offset) {
        const V pairs = _mm256_broadcastsi128_si256(
            _mm_setr_epi8(0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15));
        const V taps = join(load128(base + offset[0]), load128(base + offset[4]));
        return _mm256_shuffle_epi8(taps, pairs);
    }
    static V quantize(const float* p) {
        // max returns its second operand when the first is NaN.
        const __m256 positive = _mm256_max_ps(_mm256_loadu_ps(p), _mm256_setzero_ps());
        const __m256 clamped = _mm256_min_ps(positive, _mm256_set1_ps(1.0F));
        return _mm256_cvtps_epi32(_mm256_mul_ps(clamped, _mm256_set1_ps(kCropScale)));
    }
    static void store_lanes_interleaved(int16_t* out, V low, V high) {
        store(out, _mm256_permute2x128_si256(low, high, 0x20));
        store(out + 16, _mm256_permute2x128_si256(low, high, 0x31));
    }
    static void store_low_bytes(uint8_t* out, V v) {
        const __m128i half =
            _mm_packs_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
        _mm_storel_epi64(static_cast<__m128i*>(static_cast<void*>(out)),
                         _mm_packus_epi16(half, half));
    }
    static V expand_rgb(const uint8_t* p) {
        const V spread = _mm256_broadcastsi128_si256(
            _mm_setr_epi8(0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11, -1));
        return _mm256_shuffle_epi8(join(load128(p), load128(p + 12)), spread);
    }
};

}  // namespace

const Kernels& avx2_kernels() {
    static constexpr Kernels kKernels = KernelSet<Avx2>::make("avx2");
    return kKernels;
}

}  // namespace newscaster::composite
