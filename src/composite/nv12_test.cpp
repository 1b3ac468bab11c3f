#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <random>

#include "composite/compositor.h"
#include "newscaster/error.h"

namespace newscaster::composite {
namespace {

RgbImage random_image(int width, int height, unsigned seed) {
    std::mt19937 engine(seed);
    std::uniform_int_distribution<int> level(0, 255);
    RgbImage image{width, height, std::vector<uint8_t>(static_cast<size_t>(3 * width * height))};
    for (auto& value : image.pixels) value = static_cast<uint8_t>(level(engine));
    return image;
}

RgbImage flat(uint8_t r, uint8_t g, uint8_t b) {
    return {2, 2, {r, g, b, r, g, b, r, g, b, r, g, b}};
}

// BT.709-6 items 3.2 to 3.5 with the 8-bit quantisation of item 4.6, in double.
std::array<double, 3> reference_ycbcr(double r, double g, double b) {
    const double luma = 0.2126 * r + 0.7152 * g + 0.0722 * b;
    return {16.0 + 219.0 / 255.0 * luma, 128.0 + 224.0 / 255.0 * (b - luma) / 1.8556,
            128.0 + 224.0 / 255.0 * (r - luma) / 1.5748};
}

TEST(RgbToNv12, KnownColours) {
    struct Case {
        std::array<uint8_t, 3> rgb;
        std::array<int, 3> ycbcr;
    };
    // Rounded real-valued results of BT.709 limited range.
    const std::array<Case, 8> cases = {{{{0, 0, 0}, {16, 128, 128}},
                                        {{255, 255, 255}, {235, 128, 128}},
                                        {{255, 0, 0}, {63, 102, 240}},
                                        {{0, 255, 0}, {173, 42, 26}},
                                        {{0, 0, 255}, {32, 240, 118}},
                                        {{255, 255, 0}, {219, 16, 138}},
                                        {{0, 255, 255}, {188, 154, 16}},
                                        {{255, 0, 255}, {78, 214, 230}}}};
    for (const auto& [rgb, wanted] : cases) {
        const Nv12Image out = rgb_to_nv12(flat(rgb[0], rgb[1], rgb[2]));
        for (const uint8_t luma : out.y) EXPECT_EQ(luma, wanted[0]);
        EXPECT_EQ(out.uv[0], wanted[1]);
        EXPECT_EQ(out.uv[1], wanted[2]);
    }
}

TEST(RgbToNv12, GreysHaveNoColour) {
    for (int level = 0; level < 256; ++level) {
        const auto v = static_cast<uint8_t>(level);
        const Nv12Image out = rgb_to_nv12(flat(v, v, v));
        EXPECT_EQ(out.uv[0], 128) << level;
        EXPECT_EQ(out.uv[1], 128) << level;
        EXPECT_EQ(out.y[0], std::lround(16.0 + 219.0 / 255.0 * level)) << level;
    }
}

TEST(RgbToNv12, WithinOneLevelOfTheRealConversion) {
    const RgbImage image = random_image(210, 94, 7);
    const Nv12Image out = rgb_to_nv12(image);
    const auto at = [&](int x, int y, int c) {
        return static_cast<double>(
            image.pixels[static_cast<size_t>(3 * (y * image.width + x) + c)]);
    };
    double worst = 0.0;
    for (int y = 0; y < image.height; ++y) {
        for (int x = 0; x < image.width; ++x) {
            const auto wanted = reference_ycbcr(at(x, y, 0), at(x, y, 1), at(x, y, 2));
            const double luma = out.y[static_cast<size_t>(y * image.width + x)];
            worst = std::max(worst, std::abs(luma - wanted[0]));
            if (x % 2 != 0 || y % 2 != 0) continue;
            std::array<double, 3> mean{};
            for (int c = 0; c < 3; ++c) {
                mean[static_cast<size_t>(c)] =
                    (at(x, y, c) + at(x + 1, y, c) + at(x, y + 1, c) + at(x + 1, y + 1, c)) / 4.0;
            }
            const auto chroma = reference_ycbcr(mean[0], mean[1], mean[2]);
            const auto place = static_cast<size_t>(y / 2 * image.width + x);
            worst = std::max(worst, std::abs(out.uv[place] - chroma[1]));
            worst = std::max(worst, std::abs(out.uv[place + 1] - chroma[2]));
        }
    }
    EXPECT_LE(worst, 0.52);  // half a level of rounding and the error of the coefficients
}

TEST(RgbToNv12, AnyEvenBoxGivesTheBytesOfTheWhole) {
    const RgbImage whole = random_image(64, 48, 11);
    const Nv12Image out = rgb_to_nv12(whole);
    for (const Box box : {Box{0, 0, 2, 2}, Box{6, 10, 40, 32}, Box{30, 2, 64, 48}}) {
        RgbImage part{box.width(), box.height(), {}};
        for (int y = box.y0; y < box.y1; ++y) {
            const auto row = whole.pixels.begin() + 3 * (y * whole.width + box.x0);
            part.pixels.insert(part.pixels.end(), row, row + 3 * box.width());
        }
        const Nv12Image cut = rgb_to_nv12(part);
        for (int y = 0; y < box.height(); ++y) {
            for (int x = 0; x < box.width(); ++x) {
                const auto there = static_cast<size_t>((box.y0 + y) * whole.width + box.x0 + x);
                ASSERT_EQ(cut.y[static_cast<size_t>(y * box.width() + x)], out.y[there]);
                if (y % 2 != 0) continue;
                const auto chroma =
                    static_cast<size_t>((box.y0 + y) / 2 * whole.width + box.x0 + x);
                ASSERT_EQ(cut.uv[static_cast<size_t>(y / 2 * box.width() + x)], out.uv[chroma]);
            }
        }
    }
}

TEST(RgbToNv12, EveryKernelGivesTheSameBytes) {
    ASSERT_EQ(available_kernels().back(), "baseline");
    for (const int width : {2, 4, 6, 14, 16, 18, 30, 62, 100, 130}) {
        const RgbImage image = random_image(width, 6, static_cast<unsigned>(width));
        const Nv12Image wanted = rgb_to_nv12(image, "baseline");
        for (const auto& kernel : available_kernels()) {
            const Nv12Image out = rgb_to_nv12(image, kernel);
            EXPECT_EQ(out.y, wanted.y) << kernel << " width " << width;
            EXPECT_EQ(out.uv, wanted.uv) << kernel << " width " << width;
        }
    }
}

TEST(RgbToNv12, RefusesWhatItCannotConvert) {
    EXPECT_THROW((void)rgb_to_nv12({3, 2, std::vector<uint8_t>(18)}), Error);
    EXPECT_THROW((void)rgb_to_nv12({2, 3, std::vector<uint8_t>(18)}), Error);
    EXPECT_THROW((void)rgb_to_nv12({2, 2, std::vector<uint8_t>(11)}), Error);
    EXPECT_THROW((void)rgb_to_nv12({0, 0, {}}), Error);
    EXPECT_THROW((void)rgb_to_nv12(flat(1, 2, 3), "mmx"), Error);
}

}  // namespace
}  // namespace newscaster::composite
