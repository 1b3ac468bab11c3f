#include "core/keypoint_blend.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>

namespace newscaster {
namespace {

using Points = std::vector<float>;

Points random_points(size_t count, std::mt19937& random) {
    std::uniform_real_distribution<float> value(-0.9F, 0.9F);
    Points points(3 * count);
    for (float& p : points) p = value(random);
    return points;
}

Points mixed(double u, const Points& a, double v, const Points& b) {
    Points result(a.size());
    for (size_t i = 0; i < a.size(); ++i) result[i] = static_cast<float>(u * a[i] + v * b[i]);
    return result;
}

TEST(BlendFit, FindsTheSharesThatMadeTheFrame) {
    std::mt19937 random(1);
    for (const double share : {-0.3, 0.0, 0.2, 0.5, 0.9, 1.4}) {
        const auto a = random_points(12, random);
        const auto b = random_points(12, random);
        const auto target = mixed(1.0 - share, a, share, b);
        const BlendFit fit(target, {{a, 0.5}, {b, 0.5}});
        const std::vector<double> weights(12, 1.0);
        const auto shares = fit.shares(weights);
        EXPECT_NEAR(shares[1], share, 1e-3);
        EXPECT_NEAR(shares[0] + shares[1], 1.0, 1e-12);
        EXPECT_LT(fit.residual(weights, shares), 1e-4);
    }
}

TEST(BlendFit, ThreeKeysReproduceWhatTwoCannot) {
    std::mt19937 random(2);
    const auto a = random_points(8, random);
    const auto b = random_points(8, random);
    const auto c = random_points(8, random);
    const auto target = mixed(1.0, mixed(0.5, a, 0.1, b), 0.4, c);
    const std::vector<double> weights(8, 1.0);
    const BlendFit two(target, {{a, 0.5}, {b, 0.5}});
    const BlendFit three(target, {{a, 0.5}, {b, 0.5}, {c, 0.0}});
    EXPECT_GT(two.residual(weights, two.shares(weights)), 0.05);
    EXPECT_LT(three.residual(weights, three.shares(weights)), 1e-4);
}

TEST(BlendFit, PriorsDecideWhereKeypointsAreSilent) {
    std::mt19937 random(3);
    const auto still = random_points(5, random);
    const BlendFit fit(still, {{still, 0.25}, {still, 0.75}});
    const std::vector<double> weights(5, 1.0);
    const auto shares = fit.shares(weights);
    EXPECT_NEAR(shares[0], 0.25, 1e-9);
    EXPECT_NEAR(shares[1], 0.75, 1e-9);
    EXPECT_EQ(fit.spread(weights, shares), 0.0);
}

TEST(BlendFit, SpreadIsTheDistanceOfTheKeysUsed) {
    const Points target{0.0F, 0.0F, 0.0F};
    const Points left{-0.3F, 0.0F, 0.0F};
    const Points right{0.3F, 0.0F, 0.0F};
    const BlendFit fit(target, {{left, 0.5}, {right, 0.5}});
    const std::vector<double> weights{1.0};
    const auto shares = fit.shares(weights);
    EXPECT_NEAR(fit.residual(weights, shares), 0.0, 1e-6);
    EXPECT_NEAR(fit.spread(weights, shares), 0.3, 1e-6);
}

// The left half of the face has gone a quarter of its way, the right half three quarters.
TEST(ShareMaps, EveryPlaceFollowsItsOwnKeypoints) {
    const Points a{-0.5F, 0.0F, 0.0F, 0.5F, 0.0F, 0.0F};
    const Points b{-0.5F, 0.2F, 0.0F, 0.5F, 0.2F, 0.0F};
    const Points target{-0.5F, 0.05F, 0.0F, 0.5F, 0.15F, 0.0F};
    const BlendFit fit(target, {{a, 0.5}, {b, 0.5}});
    const ShareMaps maps(fit, target);
    const auto after = maps.map(1, 64, 64);
    EXPECT_NEAR(after[32 * 64 + 16], 0.25F, 0.01F);
    EXPECT_NEAR(after[32 * 64 + 48], 0.75F, 0.01F);
    EXPECT_NEAR(maps.overall(1), 0.5, 1e-3);
    const auto before = maps.map(0, 64, 64);
    for (size_t i = 0; i < after.size(); ++i) EXPECT_NEAR(before[i] + after[i], 1.0F, 1e-5F);
}

TEST(UpsampleGrid, KeepsConstantsAndRamps) {
    const std::vector<float> constant(16, 0.7F);
    for (const float value : upsample_grid(constant, 4, 9, 13)) EXPECT_FLOAT_EQ(value, 0.7F);

    std::vector<float> ramp(64);
    for (size_t i = 0; i < ramp.size(); ++i) ramp[i] = static_cast<float>(i % 8);
    const auto fine = upsample_grid(ramp, 8, 16, 32);
    for (size_t x = 2; x < 30; ++x) {
        EXPECT_NEAR(fine[5 * 32 + x], (static_cast<float>(x) + 0.5F) / 4.0F - 0.5F, 1e-5F);
    }
    EXPECT_FLOAT_EQ(fine[0], 0.0F);
    EXPECT_FLOAT_EQ(fine[31], 7.0F);
}

TEST(KeypointBells, PeakAtTheKeypointAndFallByDistance) {
    const Points points{0.25F, -0.25F, 0.9F};
    const auto bells = keypoint_bells(points, 4, 0.5);  // cell centres at -0.75, -0.25, 0.25, 0.75
    EXPECT_NEAR(bells[1 * 4 + 2], 1.0, 1e-12);
    EXPECT_NEAR(bells[1 * 4 + 3], std::exp(-0.5), 1e-12);
    EXPECT_NEAR(bells[2 * 4 + 3], std::exp(-1.0), 1e-12);
}

}  // namespace
}  // namespace newscaster
