// PSNR and SSIM against values computed with numpy and scipy (correlate1d) in double precision.
#include "forensics/picture_metrics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace newscaster::forensics {
namespace {

constexpr int kWidth = 40;
constexpr int kHeight = 32;

struct Pair {
    std::vector<uint8_t> a, b;
    [[nodiscard]] Plane first() const { return {a.data(), kWidth, kHeight}; }
    [[nodiscard]] Plane second() const { return {b.data(), kWidth, kHeight}; }
};

Pair patterns() {
    Pair pair;
    for (int y = 0; y < kHeight; ++y) {
        for (int x = 0; x < kWidth; ++x) {
            const int a = (x * 7 + y * 13 + (x * y) % 31) % 256;
            pair.a.push_back(static_cast<uint8_t>(a));
            pair.b.push_back(
                static_cast<uint8_t>(std::clamp(a + (x * 5 + y * 3) % 11 - 5, 0, 255)));
        }
    }
    return pair;
}

constexpr Box kAll{0, 0, kWidth, kHeight};

TEST(PictureMetrics, AgreeWithScipy) {
    const Pair pair = patterns();
    EXPECT_NEAR(psnr_db(pair.first(), pair.second(), kAll, area_of(kAll)).value(),
                38.17890930650796, 1e-9);
    const Box part{4, 3, 30, 25};
    EXPECT_NEAR(psnr_db(pair.first(), pair.second(), part, area_of(part)).value(),
                38.175832347763404, 1e-9);
    const double windows = (kWidth - 10.0) * (kHeight - 10.0);
    EXPECT_NEAR(ssim(pair.first(), pair.second(), kAll, windows), 0.9947624392658149, 2e-6);
}

TEST(PictureMetrics, CountWhatIsOutsideAsEqual) {
    const Pair pair = patterns();
    const double area = area_of(kAll);
    const double once = psnr_db(pair.first(), pair.second(), kAll, area).value();
    EXPECT_NEAR(psnr_db(pair.first(), pair.second(), kAll, 10.0 * area).value(), once + 10.0, 1e-9);
    const double windows = (kWidth - 10.0) * (kHeight - 10.0);
    const double inside = ssim(pair.first(), pair.second(), kAll, windows);
    EXPECT_NEAR(ssim(pair.first(), pair.second(), kAll, 2.0 * windows), 0.5 * (1.0 + inside), 1e-9);
}

TEST(PictureMetrics, KnowEqualPictures) {
    const Pair pair = patterns();
    EXPECT_FALSE(psnr_db(pair.first(), pair.first(), kAll, area_of(kAll)).has_value());
    EXPECT_NEAR(ssim(pair.first(), pair.first(), kAll, area_of(kAll)), 1.0, 1e-5);
    const Box tiny{0, 0, 10, 10};
    EXPECT_EQ(ssim(pair.first(), pair.second(), tiny, area_of(tiny)), 1.0);
}

TEST(PictureMetrics, FallWithNoise) {
    std::mt19937 random(3);
    const Pair clean = patterns();
    double last_psnr = 1e9;
    double last_ssim = 1.0;
    for (const int noise : {1, 4, 16, 64}) {
        Pair pair = clean;
        std::uniform_int_distribution<int> values(-noise, noise);
        for (size_t i = 0; i < pair.b.size(); ++i) {
            pair.b[i] = static_cast<uint8_t>(std::clamp(clean.a[i] + values(random), 0, 255));
        }
        const double psnr = psnr_db(pair.first(), pair.second(), kAll, area_of(kAll)).value();
        const double similarity = ssim(pair.first(), pair.second(), kAll, area_of(kAll));
        EXPECT_LT(psnr, last_psnr);
        EXPECT_LT(similarity, last_ssim);
        last_psnr = psnr;
        last_ssim = similarity;
    }
}

}  // namespace
}  // namespace newscaster::forensics
