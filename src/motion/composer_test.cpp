#include "motion/composer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "newscaster/error.h"

namespace newscaster::motion {
namespace {

using pack::SpanKind;

// scale, pitch, yaw, roll, translation 3, two blendshapes; two keypoints.
pack::Manifest two_point_manifest() {
    pack::Manifest manifest;
    manifest.keypoints.count = 2;
    const std::vector<std::pair<SpanKind, int64_t>> spans{
        {SpanKind::scale, 1},    {SpanKind::pitch_deg, 1},   {SpanKind::yaw_deg, 1},
        {SpanKind::roll_deg, 1}, {SpanKind::translation, 3}, {SpanKind::blendshapes, 2}};
    for (const auto& [kind, size] : spans) {
        manifest.motion.layout.push_back({.name = "span",
                                          .kind = kind,
                                          .offset = manifest.motion.dims,
                                          .size = size,
                                          .neutral = kind == SpanKind::scale ? 1.0 : 0.0,
                                          .channels = {}});
        manifest.motion.dims += size;
    }
    return manifest;
}

const std::vector<float> kBasis{1, 0, 0, 0, 0, 0,       // first shape: keypoint 0 to the right
                                0, 0, 0, 0, 2, 0};      // second shape: keypoint 1 down by 2
const std::vector<float> kCanonical{0.0F, 0.0F, -1.0F,  // nose tip: towards the viewer
                                    1.0F, 0.0F, 0.0F};  // cheek: to the right
const std::vector<float> kRest{1, 0, 0, 0, 0, 0, 0, 0, 0};

std::vector<float> compose(const std::vector<float>& motion,
                           const std::vector<float>& source = kRest) {
    const Composer composer(two_point_manifest(), kBasis,
                            {{.canonical_keypoints = kCanonical, .motion = source}});
    return composer.driving_keypoints(motion, 0);
}

void expect_points(const std::vector<float>& found, const std::vector<float>& wanted) {
    EXPECT_THAT(found, ::testing::Pointwise(::testing::FloatNear(1e-6F), wanted));
}

TEST(Composer, RestGivesTheSourceKeypoints) {
    expect_points(compose(kRest), kCanonical);
    const std::vector<float> source{2, 0, 0, 0, 0.5F, 0.25F, 0, 0, 0};
    expect_points(compose(kRest, source), {0.5F, 0.25F, -2.0F, 2.5F, 0.25F, 0.0F});
}

TEST(Composer, SourceKeypointsAreTheSourceAtItsOwnMotion) {
    // Scale 2, +90 roll, shifted, the second shape at 0.5: the turn moves points, not expressions.
    const std::vector<float> source{2, 0, 0, 90, 0.5F, 0.25F, 0, 0, 0.5F};
    const Composer composer(two_point_manifest(), kBasis,
                            {{.canonical_keypoints = kCanonical, .motion = source}});
    expect_points(composer.source_keypoints(0), {0.5F, 0.25F, -2.0F, 0.5F, 4.25F, 0.0F});
    expect_points(compose(kRest), kCanonical);
}

TEST(Composer, AnglesTurnAsDocumented) {
    // +90 pitch: nose down. +90 yaw: nose to the picture's left. +90 roll: cheek down.
    expect_points(compose({1, 90, 0, 0, 0, 0, 0, 0, 0}), {0, 1, 0, 1, 0, 0});
    expect_points(compose({1, 0, 90, 0, 0, 0, 0, 0, 0}), {-1, 0, 0, 0, 0, -1});
    expect_points(compose({1, 0, 0, 90, 0, 0, 0, 0, 0}), {0, 0, -1, 0, 1, 0});
    // Pitch first, then yaw, then roll: nose down; yaw leaves it; roll carries it to the left.
    expect_points(compose({1, 90, 90, 90, 0, 0, 0, 0, 0}), {-1, 0, 0, 0, 0, -1});
}

TEST(Composer, RotationsKeepDistances) {
    const auto points = compose({1, 20, -35, 50, 0, 0, 0, 0, 0});
    double length = 0.0;
    double dot = 0.0;
    for (size_t i = 0; i < 3; ++i) {
        length += points[i] * points[i];
        dot += points[i] * points[i + 3];
    }
    EXPECT_NEAR(length, 1.0, 1e-6);
    EXPECT_NEAR(dot, 0.0, 1e-6);
}

TEST(Composer, ExpressionIsScaledButNotTurned) {
    // 2 * ((0,0,-1) R(yaw 90) + (0.5,0,0)) + (0.1,0.2,0.3)
    expect_points(compose({2, 0, 90, 0, 0.1F, 0.2F, 0.3F, 0.5F, 1.0F}),
                  {-0.9F, 0.2F, 0.3F, 0.1F, 4.2F, -1.7F});
}

TEST(Composer, AddsTheSourcePose) {
    const std::vector<float> source{1, 0, 60, 0, 0, 0, 0, 0, 0};
    expect_points(compose({1, 0, 30, 0, 0, 0, 0, 0, 0}, source), {-1, 0, 0, 0, 0, -1});
}

TEST(Composer, TakesKeypointOffsetsDirectly) {
    pack::Manifest manifest;
    manifest.keypoints.count = 1;
    manifest.motion.dims = 3;
    manifest.motion.layout = {
        {.name = "exp", .kind = SpanKind::expression, .offset = 0, .size = 3, .channels = {}}};
    const Composer composer(manifest, {},
                            {{.canonical_keypoints = {1, 2, 3}, .motion = {0, 0, 0}}});
    expect_points(composer.driving_keypoints(std::vector<float>{0.5F, 0.25F, -1.0F}, 0),
                  {1.5F, 2.25F, 2.0F});
}

TEST(Composer, RefusesSizesThatDoNotFit) {
    const SourcePose good{.canonical_keypoints = kCanonical, .motion = kRest};
    EXPECT_THROW(Composer(two_point_manifest(), {1.0F}, {good}), Error);
    EXPECT_THROW(Composer(two_point_manifest(), kBasis, {{kCanonical, {1.0F}}}), Error);
    EXPECT_THROW(Composer(two_point_manifest(), kBasis, {{{1.0F}, kRest}}), Error);
    const Composer composer(two_point_manifest(), kBasis, {good});
    EXPECT_THROW(static_cast<void>(composer.driving_keypoints(std::vector<float>{1.0F}, 0)), Error);
}

}  // namespace
}  // namespace newscaster::motion
