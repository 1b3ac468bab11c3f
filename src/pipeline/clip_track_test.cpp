#include "pipeline/clip_track.h"

#include <gtest/gtest.h>

namespace newscaster::pipeline {
namespace {

using Found = std::vector<std::optional<Framing>>;

Framing at(double x, double size = 100.0) {
    Framing framing;
    framing.crop = {.x = x, .y = 2.0 * x, .size = size, .angle_deg = 0.5 * x};
    return framing;
}

TEST(FillGaps, AFaceMissedInTwoFramesIsThereAllTheSame) {
    const ClipTrack track = fill_gaps(Found{at(0), {}, {}, at(30)}, 3);
    EXPECT_EQ(track.has_face, (std::vector<bool>{true, true, true, true}));
    EXPECT_EQ(track.opacity, (std::vector<double>{1, 1, 1, 1}));
    EXPECT_DOUBLE_EQ(track.framings[1].crop.x, 10.0);
    EXPECT_DOUBLE_EQ(track.framings[2].crop.y, 40.0);
    EXPECT_DOUBLE_EQ(track.framings[2].crop.angle_deg, 10.0);
}

TEST(FillGaps, ABoxThatGrowsGrowsAroundItsMiddle) {
    const ClipTrack track = fill_gaps(Found{at(0, 100), {}, at(0, 200)}, 3);
    EXPECT_DOUBLE_EQ(track.framings[1].crop.size, 150.0);
    EXPECT_DOUBLE_EQ(track.framings[1].crop.x + 75.0, 75.0);  // middles: 50 and 100
}

TEST(FillGaps, LongGapsAreHiddenAndLeftAndEnteredBitByBit) {
    Found found(20, at(5));
    for (size_t i = 8; i < 12; ++i) found[i].reset();
    const ClipTrack track = fill_gaps(found, 3);
    for (size_t i = 0; i < found.size(); ++i) {
        EXPECT_EQ(track.has_face[i], found[i].has_value()) << i;
        EXPECT_DOUBLE_EQ(track.opacity[i], track.opacity[19 - i]) << i;
        if (!found[i]) {
            EXPECT_EQ(track.opacity[i], 0.0) << i;
        }
    }
    for (size_t i = 12; i < 16; ++i) EXPECT_GT(track.opacity[i], track.opacity[i - 1]) << i;
    EXPECT_EQ(track.opacity[15], 1.0);
    EXPECT_EQ(track.opacity[4], 1.0);
}

TEST(FillGaps, AtTheEndsTheNearestBoxStays) {
    const ClipTrack track = fill_gaps(Found{{}, at(7), at(9), {}}, 1);
    EXPECT_EQ(track.framings.front().crop.x, 7.0);
    EXPECT_EQ(track.framings.back().crop.x, 9.0);
    EXPECT_EQ(track.opacity.front(), 0.0);
    EXPECT_EQ(track.opacity.back(), 0.0);
}

TEST(SmoothBoxes, ASteadyMovementKeepsItsPlaceAndNoiseShrinks) {
    std::vector<Framing> steady;
    std::vector<Framing> noisy;
    for (int i = 0; i < 40; ++i) {
        steady.push_back(at(3.0 * i));
        noisy.push_back(at(i % 2 == 0 ? 50.0 : 52.0));
    }
    smooth_boxes(steady, 13);
    smooth_boxes(noisy, 13);
    for (size_t i = 0; i < steady.size(); ++i) {
        EXPECT_NEAR(steady[i].crop.x, 3.0 * static_cast<double>(i), 1e-9);
    }
    for (size_t i = 6; i < 34; ++i) EXPECT_NEAR(noisy[i].crop.x, 51.0, 0.1);
}

TEST(SmoothBoxes, OneFrameMeansNoSmoothing) {
    std::vector<Framing> framings{at(1), at(9), at(4)};
    smooth_boxes(framings, 1);
    EXPECT_EQ(framings[1].crop.x, 9.0);
}

}  // namespace
}  // namespace newscaster::pipeline
