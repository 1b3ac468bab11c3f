#include "pipeline/overlay.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

namespace newscaster::pipeline {
namespace {

constexpr int kSide = 32;

RgbImage black() {
    return {kSide, kSide, std::vector<uint8_t>(3 * kSide * kSide)};
}

// Sum of the first channel, in whole pixels.
double ink(const RgbImage& image) {
    double sum = 0.0;
    for (size_t i = 0; i < image.pixels.size(); i += 3) sum += image.pixels[i];
    return sum / 255.0;
}

uint8_t at(const RgbImage& image, int x, int y) {
    return image.pixels[3 * (static_cast<size_t>(y) * kSide + static_cast<size_t>(x))];
}

TEST(Overlay, ADotHasTheAreaOfItsCircle) {
    for (const double diameter : {3.0, 6.0, 11.0}) {
        RgbImage image = black();
        draw_dot(image, {15.3, 16.8}, diameter, {255, 0, 0});
        EXPECT_NEAR(ink(image), std::numbers::pi * diameter * diameter / 4.0,
                    0.1 * diameter * diameter);
        EXPECT_EQ(at(image, 15, 16), 255);
    }
}

TEST(Overlay, ALineIsAsWideAsAskedInEveryDirection) {
    for (int turn = 0; turn < 16; ++turn) {
        const double angle = turn * std::numbers::pi / 16.0;
        RgbImage image = black();
        const Position from{16.0 - 10.0 * std::cos(angle), 16.0 - 10.0 * std::sin(angle)};
        const Position to{16.0 + 10.0 * std::cos(angle), 16.0 + 10.0 * std::sin(angle)};
        draw_line(image, from, to, 3.0, {255, 255, 255});
        EXPECT_NEAR(ink(image), 20.0 * 3.0 + std::numbers::pi * 9.0 / 4.0, 4.0) << turn;
    }
}

TEST(Overlay, WhatLiesBeyondThePictureIsLeftOut) {
    RgbImage image = black();
    draw_line(image, {-1e6, 16.0}, {1e6, 16.0}, 2.0, {9, 8, 7});
    EXPECT_EQ(at(image, 0, 15), 9);
    EXPECT_EQ(at(image, kSide - 1, 16), 9);
    EXPECT_EQ(at(image, 5, 12), 0);
    RgbImage untouched = black();
    draw_dot(untouched, {-50.0, 90.0}, 5.0, {255, 255, 255});
    const double nan = std::numeric_limits<double>::quiet_NaN();
    draw_dot(untouched, {nan, 4.0}, 5.0, {255, 255, 255});
    draw_line(untouched, {0.0, 0.0}, {std::numeric_limits<double>::infinity(), 4.0}, 5.0,
              {255, 255, 255});
    EXPECT_EQ(ink(untouched), 0.0);
}

}  // namespace
}  // namespace newscaster::pipeline
