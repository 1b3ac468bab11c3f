#include "decode/crop_blend.h"

#include <gtest/gtest.h>

#include <cmath>

namespace newscaster::decode {
namespace {

constexpr int64_t kSize = 64;

// A smooth pattern that shows the keypoint-moved part of the plane: shifted by dx pixels.
std::vector<float> pattern(double dx) {
    std::vector<float> crop(3 * kSize * kSize);
    for (int64_t c = 0; c < 3; ++c) {
        for (int64_t y = 0; y < kSize; ++y) {
            for (int64_t x = 0; x < kSize; ++x) {
                const double u = static_cast<double>(x) - dx;
                crop[static_cast<size_t>((c * kSize + y) * kSize + x)] =
                    static_cast<float>(0.5 + 0.4 * std::sin(0.35 * u + static_cast<double>(c)) *
                                                 std::cos(0.2 * static_cast<double>(y)));
            }
        }
    }
    return crop;
}

// A lattice of keypoints over the crop, all moved by dx pixels.
std::vector<float> lattice(double dx) {
    std::vector<float> points;
    for (int y = -4; y <= 4; ++y) {
        for (int x = -4; x <= 4; ++x) {
            points.push_back(static_cast<float>(0.24 * x + 2.0 * dx / kSize));
            points.push_back(static_cast<float>(0.24 * y));
            points.push_back(0.0F);
        }
    }
    return points;
}

double mean_square(const std::vector<float>& a, const std::vector<float>& b) {
    double sum = 0.0;
    int count = 0;
    for (int64_t c = 0; c < 3; ++c) {
        for (int64_t y = 8; y < kSize - 8; ++y) {
            for (int64_t x = 8; x < kSize - 8; ++x) {
                const auto i = static_cast<size_t>((c * kSize + y) * kSize + x);
                sum += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
                ++count;
            }
        }
    }
    return sum / count;
}

std::vector<float> blended(const std::vector<float>& target, const std::vector<float>& a_points,
                           const std::vector<float>& a, const std::vector<float>& b_points,
                           const std::vector<float>& b) {
    const ShareMaps shares(BlendFit(target, {{a_points, 0.5}, {b_points, 0.5}}), target);
    return blend_crops(target, {{a_points, a}, {b_points, b}}, shares, kSize);
}

TEST(CropBlend, StillKeypointsGiveTheCrop) {
    const auto crop = pattern(0.0);
    const auto points = lattice(0.0);
    const auto result = blended(points, points, crop, points, crop);
    ASSERT_EQ(result.size(), crop.size());
    for (size_t i = 0; i < crop.size(); ++i) EXPECT_NEAR(result[i], crop[i], 1e-6F);
}

TEST(CropBlend, MovesTheCropsAlongWithTheKeypoints) {
    const auto truth = pattern(3.0);
    const auto a = pattern(0.0);
    const auto b = pattern(6.0);
    const auto result = blended(lattice(3.0), lattice(0.0), a, lattice(6.0), b);
    std::vector<float> mixed(a.size());
    for (size_t i = 0; i < a.size(); ++i) mixed[i] = 0.5F * (a[i] + b[i]);
    const double plain = mean_square(mixed, truth);
    EXPECT_GT(plain, 0.005);
    EXPECT_LT(mean_square(result, truth), plain / 20.0);
}

TEST(CropBlend, StaysInRangeAndInsideTheCrop) {
    std::vector<float> checks(3 * kSize * kSize);
    for (size_t i = 0; i < checks.size(); ++i) {
        checks[i] = (i / 4 + i / (4 * kSize)) % 2 == 0 ? 0.0F : 1.0F;
    }
    // Far beyond the crop: the outermost pixels continue.
    const auto result = blended(lattice(0.0), lattice(90.0), checks, lattice(-90.0), checks);
    for (const float value : result) {
        EXPECT_GE(value, 0.0F);
        EXPECT_LE(value, 1.0F);
    }
}

}  // namespace
}  // namespace newscaster::decode
