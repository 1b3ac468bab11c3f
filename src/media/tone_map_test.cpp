#include "media/tone_map.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <random>
#include <string>

#include "media/clip_source.h"
#include "media/test_support.h"

namespace newscaster::media {
namespace {

using Rgb = std::array<double, 3>;

constexpr double kPqWhite = 0.58069;  // 203 nit, BT.2408 table 1
constexpr double kHlgWhite = 0.75;

double grey(const HdrColours& colours, double signal) {
    const Rgb mapped = tone_mapped(colours, {signal, signal, signal});
    EXPECT_NEAR(mapped[0], mapped[1], 1e-3);
    EXPECT_NEAR(mapped[2], mapped[1], 1e-3);
    return mapped[1];
}

TEST(ToneMap, ReferenceWhiteIsTheSameInBothAndLeavesRoomForHighlights) {
    const double pq = grey({HdrTransfer::pq}, kPqWhite);
    EXPECT_NEAR(pq, grey({HdrTransfer::hlg}, kHlgWhite), 1e-3);
    EXPECT_NEAR(pq, 0.903, 0.01);
    EXPECT_NEAR(grey({HdrTransfer::pq}, 0.7518), 1.0, 1e-3);  // 1000 nit
    EXPECT_NEAR(grey({HdrTransfer::hlg}, 1.0), 1.0, 1e-3);
}

TEST(ToneMap, WhatIsDarkerThanTheKneeKeepsItsLight) {
    // PQ of 5, 26, 100 nit: BT.2408 and the EOTF of BT.2100 computed apart from this code.
    for (const auto& [signal, nit] : {std::pair{0.24785, 5.0}, {0.38003, 26.0}, {0.50808, 100.0}}) {
        const double wanted = std::pow(nit / 203.0, 1.0 / 2.4);
        EXPECT_NEAR(grey({HdrTransfer::pq}, signal), wanted, 4e-3) << nit;
    }
    EXPECT_EQ(grey({HdrTransfer::pq}, 0.0), 0.0);
}

TEST(ToneMap, MaterialNoBrighterThanWhiteIsNotCompressed) {
    EXPECT_NEAR(grey({HdrTransfer::pq, Primaries::bt2020, 203.0}, kPqWhite), 1.0, 1e-3);
}

class ToneMaps : public ::testing::TestWithParam<HdrColours> {};

TEST_P(ToneMaps, MoreLightIsNeverDarker) {
    double before = 0.0;
    for (int step = 0; step <= 1000; ++step) {
        const double now = grey(GetParam(), step / 1000.0);
        EXPECT_GE(now, before - 1e-12) << step;
        EXPECT_LE(now, 1.0 + 1e-9);
        before = now;
    }
}

TEST_P(ToneMaps, PicturesGetTheLevelsOfTheCurve) {
    const ToneMap map(GetParam());
    std::mt19937 random(7);
    std::uniform_int_distribution<int> value(0, 65535);
    for (int i = 0; i < 20'000; ++i) {
        std::array<uint16_t, 3> signal{};
        // Half of them within a tenth of a grey, as most of a picture.
        const int middle = value(random);
        for (auto& channel : signal) {
            const int other = i % 2 == 1 ? value(random) : middle + value(random) / 10;
            channel = static_cast<uint16_t>(std::min(other, 65535));
        }
        std::array<uint8_t, 3> found{};
        map.apply(signal, found);
        const Rgb wanted = tone_mapped(
            GetParam(), {signal[0] / 65535.0, signal[1] / 65535.0, signal[2] / 65535.0});
        for (size_t c = 0; c < 3; ++c) ASSERT_NEAR(found[c], 255.0 * wanted[c], 0.75) << i;
    }
}

INSTANTIATE_TEST_SUITE_P(All, ToneMaps,
                         ::testing::Values(HdrColours{HdrTransfer::pq, Primaries::bt2020, 1000.0},
                                           HdrColours{HdrTransfer::pq, Primaries::p3_d65, 4000.0},
                                           HdrColours{HdrTransfer::pq, Primaries::bt709, 203.0},
                                           HdrColours{HdrTransfer::hlg, Primaries::bt2020,
                                                      1000.0}));

TEST(ToneMap, AHighlightKeepsItsHue) {
    const HdrColours colours{HdrTransfer::pq, Primaries::bt709, 1000.0};
    const Rgb dim = tone_mapped(colours, {0.45, 0.35, 0.25});
    // The same light, ten times as much.
    const Rgb bright = tone_mapped(colours, {0.68758, 0.57063, 0.44317});
    EXPECT_NEAR(bright[1] / bright[0], dim[1] / dim[0], 0.01);
    EXPECT_NEAR(bright[2] / bright[0], dim[2] / dim[0], 0.01);
}

// Case "10 bit and HDR" of a clip: libav's tags reach the mapping.
TEST(ToneMap, HdrClipsAreRead) {
    const testing::ScratchFolder folder;
    // Grey of the reference white, 10 bit limited: 64 + 876 x signal.
    for (const auto& [transfer, luma] : {std::pair{"arib-std-b67", 721}, {"smpte2084", 573}}) {
        const std::string file = folder.file("hdr.mkv");
        const std::string command = fmt::format(
            "ffmpeg -v error -nostdin -y -f lavfi -i color=gray:s=64x48:r=25:d=0.2 -vf "
            "\"format=yuv420p10,geq=lum={}:cb=512:cr=512\" -c:v ffv1 -color_trc {} "
            "-color_primaries bt2020 -colorspace bt2020nc -color_range tv '{}'",
            luma, transfer, file);
        ASSERT_EQ(std::system(command.c_str()), 0) << command;
        const auto clip = ClipSource::open(file, {25, 1});
        const auto picture = clip->read();
        ASSERT_TRUE(picture);
        // Chroma 512 of 1023 is not quite the middle after swscale's rounding: a level or two.
        for (const uint8_t value : picture->pixels) ASSERT_NEAR(value, 0.903 * 255.0, 3.0);
    }
}

}  // namespace
}  // namespace newscaster::media
