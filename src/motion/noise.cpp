#include "motion/noise.h"

#include <cmath>
#include <cstddef>
#include <numbers>

namespace newscaster::motion {

namespace {

constexpr uint32_t kMultiplier0 = 0xD2511F53U;
constexpr uint32_t kMultiplier1 = 0xCD9E8D57U;
constexpr uint32_t kWeyl0 = 0x9E3779B9U;
constexpr uint32_t kWeyl1 = 0xBB67AE85U;
constexpr int kRounds = 10;

struct Product {
    uint32_t high;
    uint32_t low;
};

Product multiply(uint32_t a, uint32_t b) {
    const uint64_t wide = static_cast<uint64_t>(a) * b;
    return {static_cast<uint32_t>(wide >> 32U), static_cast<uint32_t>(wide)};
}

// (0, 1]: never 0, so the logarithm below is finite.
double unit_interval(uint32_t bits) {
    return (static_cast<double>(bits) + 1.0) * 0x1.0p-32;
}

// Two independent N(0,1) values from two words (Box & Muller 1958). Double precision inside, so
// that libraries whose log and sine differ in the last bit still round to the same float.
std::array<float, 2> box_muller(uint32_t radius_bits, uint32_t angle_bits) {
    const double radius = std::sqrt(-2.0 * std::log(unit_interval(radius_bits)));
    const double angle = 2.0 * std::numbers::pi * unit_interval(angle_bits);
    return {static_cast<float>(radius * std::cos(angle)),
            static_cast<float>(radius * std::sin(angle))};
}

}  // namespace

std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
    for (int round = 0; round < kRounds; ++round) {
        if (round > 0) {
            key[0] += kWeyl0;
            key[1] += kWeyl1;
        }
        const Product p0 = multiply(kMultiplier0, counter[0]);
        const Product p1 = multiply(kMultiplier1, counter[2]);
        counter = {p1.high ^ counter[1] ^ key[0], p1.low, p0.high ^ counter[3] ^ key[1], p0.low};
    }
    return counter;
}

void normal_row(uint64_t seed, int64_t frame, uint32_t stream, std::span<float> row) {
    const std::array<uint32_t, 2> key{static_cast<uint32_t>(seed),
                                      static_cast<uint32_t>(seed >> 32U)};
    const auto frame_bits = static_cast<uint64_t>(frame);
    for (size_t column = 0; column < row.size(); column += 4) {
        const auto bits = philox4x32(
            {static_cast<uint32_t>(column / 4), stream, static_cast<uint32_t>(frame_bits),
             static_cast<uint32_t>(frame_bits >> 32U)},
            key);
        const auto first = box_muller(bits[0], bits[1]);
        const auto second = box_muller(bits[2], bits[3]);
        const std::array<float, 4> values{first[0], first[1], second[0], second[1]};
        for (size_t i = 0; i < 4 && column + i < row.size(); ++i) row[column + i] = values[i];
    }
}

}  // namespace newscaster::motion
