#include "motion/noise.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace newscaster::motion {
namespace {

using Counter = std::array<uint32_t, 4>;

std::vector<float> row(uint64_t seed, int64_t frame, uint32_t stream = 0, size_t columns = 59) {
    std::vector<float> values(columns);
    normal_row(seed, frame, stream, values);
    return values;
}

double normal_cdf(double x) {
    return 0.5 * std::erfc(-x / std::sqrt(2.0));
}

double correlation(const std::vector<float>& a, const std::vector<float>& b) {
    double dot = 0.0;
    double aa = 0.0;
    double bb = 0.0;
    for (size_t i = 0; i < a.size(); ++i) {
        dot += static_cast<double>(a[i]) * b[i];
        aa += static_cast<double>(a[i]) * a[i];
        bb += static_cast<double>(b[i]) * b[i];
    }
    return dot / std::sqrt(aa * bb);
}

// Known-answer vectors published with Random123 (kat_vectors, philox4x32 10).
TEST(Noise, PhiloxMatchesThePublishedVectors) {
    EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
              (Counter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
    constexpr uint32_t kOnes = 0xffffffff;
    EXPECT_EQ(philox4x32({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
              (Counter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
    EXPECT_EQ(
        philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
        (Counter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Noise, FollowsTheNormalDistribution) {
    std::vector<float> all;
    for (int64_t frame = 0; frame < 4000; ++frame) {
        const auto values = row(42, frame);
        all.insert(all.end(), values.begin(), values.end());
    }
    const auto n = static_cast<double>(all.size());
    double sum = 0.0;
    double squares = 0.0;
    double fourths = 0.0;
    for (const float v : all) {
        const double square = static_cast<double>(v) * v;
        sum += v;
        squares += square;
        fourths += square * square;
    }
    EXPECT_NEAR(sum / n, 0.0, 4.0 / std::sqrt(n));
    EXPECT_NEAR(squares / n, 1.0, 4.0 * std::sqrt(2.0 / n));
    EXPECT_NEAR(fourths / n, 3.0, 4.0 * std::sqrt(96.0 / n));

    // Kolmogorov-Smirnov distance; 1.95 / sqrt(n) is the 0.1 % level.
    std::sort(all.begin(), all.end());
    double distance = 0.0;
    for (size_t i = 0; i < all.size(); ++i) {
        const double cdf = normal_cdf(all[i]);
        distance = std::max(
            {distance, cdf - static_cast<double>(i) / n, static_cast<double>(i + 1) / n - cdf});
    }
    EXPECT_LT(distance, 1.95 / std::sqrt(n));
}

TEST(Noise, RowsSeedsAndStreamsAreIndependent) {
    constexpr size_t kColumns = 20000;
    const double limit = 4.0 / std::sqrt(static_cast<double>(kColumns));
    const auto base = row(7, 100, 0, kColumns);
    EXPECT_LT(std::abs(correlation(base, row(7, 101, 0, kColumns))), limit);
    EXPECT_LT(std::abs(correlation(base, row(8, 100, 0, kColumns))), limit);
    EXPECT_LT(std::abs(correlation(base, row(7, 100, 1, kColumns))), limit);
    EXPECT_LT(std::abs(correlation(base, row(7 + (1ULL << 32U), 100, 0, kColumns))), limit);
    EXPECT_LT(std::abs(correlation(base, row(7, 100 + (1LL << 32U), 0, kColumns))), limit);
    // Neighbouring columns, which share a block.
    const std::vector<float> shifted(base.begin() + 1, base.end());
    EXPECT_LT(std::abs(correlation({base.begin(), base.end() - 1}, shifted)), limit);
}

TEST(Noise, ExtremeFramesAreFiniteAndDistinct) {
    const std::vector<int64_t> frames{0, -1, 1, std::numeric_limits<int64_t>::max(),
                                      std::numeric_limits<int64_t>::min()};
    for (size_t i = 0; i < frames.size(); ++i) {
        const auto values = row(1, frames[i]);
        EXPECT_TRUE(
            std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); }));
        for (size_t j = 0; j < i; ++j) EXPECT_NE(values, row(1, frames[j]));
    }
}

TEST(Noise, AShorterRowIsAPrefixOfALongerOne) {
    const auto longer = row(3, 5, 2, 64);
    for (size_t columns = 0; columns <= 64; ++columns) {
        const auto shorter = row(3, 5, 2, columns);
        EXPECT_TRUE(std::equal(shorter.begin(), shorter.end(), longer.begin()));
    }
}

}  // namespace
}  // namespace newscaster::motion
