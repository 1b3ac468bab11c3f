// Plain C++ policy: one 128-bit lane as four int32. Runs everywhere and is the yardstick of the
// vector versions.
#include "composite/kernels_impl.h"

namespace newscaster::composite {
namespace {

struct Portable {
    struct V {
        int32_t word[4];
    };
    struct Halves {
        int16_t half[8];
    };
    static constexpr int kLanes = 1;

    static Halves halves(V v) {
        Halves h;
        std::memcpy(&h, &v, sizeof(h));
        return h;
    }
    static V words(Halves h) {
        V v;
        std::memcpy(&v, &h, sizeof(v));
        return v;
    }
    template <class F>
    static V map(V a, V b, F f) {
        V v;
        for (int i = 0; i < 4; ++i) v.word[i] = f(a.word[i], b.word[i]);
        return v;
    }

    static V load(const void* p) {
        V v;
        std::memcpy(&v, p, sizeof(v));
        return v;
    }
    static void store(void* p, V v) { std::memcpy(p, &v, sizeof(v)); }
    static V splat(int32_t x) { return {{x, x, x, x}}; }
    static V splat2(int32_t x, int32_t y) { return {{x, y, x, y}}; }
    // The int16 halves never overflow into each other here: sums of four bytes.
    static V add(V a, V b) {
        return map(a, b, [](int32_t x, int32_t y) { return x + y; });
    }
    static V bit_and(V a, V b) {
        return map(a, b, [](int32_t x, int32_t y) { return x & y; });
    }
    static V bit_or(V a, V b) {
        return map(a, b, [](int32_t x, int32_t y) { return x | y; });
    }
    template <int N>
    static V shift_left(V a) {
        return map(a, a, [](int32_t x, int32_t) {
            return static_cast<int32_t>(static_cast<uint32_t>(x) << static_cast<unsigned>(N));
        });
    }
    template <int N>
    static V shift_right(V a) {
        return map(a, a, [](int32_t x, int32_t) { return x >> N; });
    }
    static V madd(V a, V b) {
        const Halves x = halves(a);
        const Halves y = halves(b);
        V v;
        for (int i = 0; i < 4; ++i) {
            v.word[i] = x.half[2 * i] * y.half[2 * i] + x.half[2 * i + 1] * y.half[2 * i + 1];
        }
        return v;
    }
    template <int J>
    static V broadcast(V a) {
        return splat(a.word[J]);
    }
    static V swap_neighbours(V a) { return {{a.word[1], a.word[0], a.word[3], a.word[2]}}; }
    static V unpack_low32(V a, V b) { return {{a.word[0], b.word[0], a.word[1], b.word[1]}}; }
    static V unpack_high32(V a, V b) { return {{a.word[2], b.word[2], a.word[3], b.word[3]}}; }
    static V interleave16(const int16_t* a, const int16_t* b) {
        return words({{a[0], b[0], a[1], b[1], a[2], b[2], a[3], b[3]}});
    }
    static V unpack_low16(V a, V b) { return interleave16(halves(a).half, halves(b).half); }
    static V unpack_high16(V a, V b) {
        return interleave16(halves(a).half + 4, halves(b).half + 4);
    }
    // Values lie in range wherever the kernels pack, so saturation is not spelled out.
    static V pack_i32(V a, V b) {
        Halves h;
        for (int i = 0; i < 4; ++i) {
            h.half[i] = static_cast<int16_t>(a.word[i]);
            h.half[i + 4] = static_cast<int16_t>(b.word[i]);
        }
        return words(h);
    }
    static V pack_u8(V a, V b) {
        const Halves x = halves(a);
        const Halves y = halves(b);
        uint8_t bytes[16];
        for (int i = 0; i < 8; ++i) {
            bytes[i] = static_cast<uint8_t>(x.half[i]);
            bytes[i + 8] = static_cast<uint8_t>(y.half[i]);
        }
        return load(bytes);
    }
    static V load_pairs(const int16_t* base, const int32_t* offset) {
        const int16_t* tap = base + *offset;
        return interleave16(tap, tap + 4);
    }
    static V quantize(const float* p) {
        V v;
        for (int i = 0; i < 4; ++i) {
            const float positive = p[i] > 0.0F ? p[i] : 0.0F;  // NaN too
            const float clamped = positive < 1.0F ? positive : 1.0F;
            v.word[i] = static_cast<int32_t>(__builtin_lrintf(clamped * kCropScale));
        }
        return v;
    }
    static void store_lanes_interleaved(int16_t* out, V low, V high) {
        store(out, low);
        store(out + 8, high);
    }
    static void store_low_bytes(uint8_t* out, V v) {
        for (int i = 0; i < 4; ++i) out[i] = static_cast<uint8_t>(v.word[i]);
    }
    static V expand_rgb(const uint8_t* p) {
        const uint8_t bytes[16] = {p[0], p[1], p[2], 0, p[3], p[4],  p[5],  0,
                                   p[6], p[7], p[8], 0, p[9], p[10], p[11], 0};
        return load(bytes);
    }
};

}  // namespace

const Kernels& portable_kernels() {
    static constexpr Kernels kKernels = KernelSet<Portable>::make("baseline");
    return kKernels;
}

}  // namespace newscaster::composite
