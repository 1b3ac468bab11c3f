// PoseSmoother against scipy's Savitzky-Golay filter, and its bound on acceleration on random
// tracks.
#include "motion/pose_smoothing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <random>

#include "newscaster/error.h"

namespace newscaster::motion {
namespace {

using pack::SpanKind;

constexpr double kFps = 25.0;

void add_span(pack::MotionSpec& spec, const std::string& name, SpanKind kind, int64_t size) {
    pack::MotionSpan span;
    span.name = name;
    span.kind = kind;
    span.size = size;
    span.offset = spec.dims;
    spec.dims += size;
    spec.layout.push_back(span);
}

// scale | pitch | yaw | roll | translation | four of expression
pack::MotionSpec degrees_spec() {
    pack::MotionSpec spec;
    add_span(spec, "scale", SpanKind::scale, 1);
    add_span(spec, "pitch", SpanKind::pitch_deg, 1);
    add_span(spec, "yaw", SpanKind::yaw_deg, 1);
    add_span(spec, "roll", SpanKind::roll_deg, 1);
    add_span(spec, "t", SpanKind::translation, 3);
    add_span(spec, "exp", SpanKind::expression, 4);
    return spec;
}

constexpr size_t kYaw = 2;
constexpr size_t kX = 4;
constexpr size_t kExpression = 7;

std::vector<MixedFrame> random_track(int64_t frames, unsigned seed, float swing = 10.0F) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> values(-swing, swing);
    std::vector<MixedFrame> track;
    for (int64_t i = 0; i < frames; ++i) {
        MixedFrame frame{.index = i, .source = i % 3, .motion = {.row = std::vector<float>(11)}};
        for (float& value : frame.motion.row) value = values(random);
        track.push_back(std::move(frame));
    }
    return track;
}

std::vector<MixedFrame> run(PoseSmoother& smoother, const std::vector<MixedFrame>& track) {
    std::vector<MixedFrame> out;
    for (const MixedFrame& frame : track) {
        for (auto& ready : smoother.push(frame)) out.push_back(std::move(ready));
    }
    for (auto& ready : smoother.finish()) out.push_back(std::move(ready));
    return out;
}

TEST(PoseSmoother, SmoothsAsScipyDoes) {
    // scipy 1.17: savgol_filter([0, 1.5, -2.25, 4, 0.5, 3.25, -1, 2], 5, 2, mode="interp").
    const std::vector<float> given{0.0F, 1.5F, -2.25F, 4.0F, 0.5F, 3.25F, -1.0F, 2.0F};
    const std::vector<double> wanted{0.05,       0.4,        0.75,       0.93571429,
                                     3.00714286, 0.89285714, 0.77142857, 1.50714286};
    auto track = random_track(8, 1);
    for (size_t i = 0; i < given.size(); ++i) {
        track[i].motion.row[kYaw] = given[i];
        track[i].motion.row[kX] = -given[i];
    }
    PoseSmoother smoother(degrees_spec(), {.smooth = true, .fps = kFps});
    const auto out = run(smoother, track);
    ASSERT_EQ(out.size(), wanted.size());
    for (size_t i = 0; i < out.size(); ++i) {
        EXPECT_NEAR(out[i].motion.row[kYaw], wanted[i], 1e-6) << i;
        EXPECT_NEAR(out[i].motion.row[kX], -wanted[i], 1e-6) << i;
    }
}

TEST(PoseSmoother, KeepsScaleExpressionOrderAndSources) {
    const auto track = random_track(40, 2);
    PoseSmoother smoother(degrees_spec(), {.smooth = true, .max_acceleration = 5.0, .fps = kFps});
    const auto out = run(smoother, track);
    ASSERT_EQ(out.size(), track.size());
    for (size_t i = 0; i < out.size(); ++i) {
        EXPECT_EQ(out[i].index, track[i].index);
        EXPECT_EQ(out[i].source, track[i].source);
        EXPECT_EQ(out[i].motion.row[0], track[i].motion.row[0]);
        for (size_t k = kExpression; k < 11; ++k) {
            EXPECT_EQ(out[i].motion.row[k], track[i].motion.row[k]);
        }
    }
}

TEST(PoseSmoother, LagsTwoFrames) {
    const auto track = random_track(9, 3);
    PoseSmoother smoother(degrees_spec(), {.smooth = true, .fps = kFps});
    size_t ready = 0;
    for (size_t i = 0; i < track.size(); ++i) {
        ready += smoother.push(track[i]).size();
        EXPECT_EQ(ready, i < 4 ? 0 : i - 1);
    }
    EXPECT_EQ(smoother.finish().size(), 2U);
}

TEST(PoseSmoother, LeavesShortTracksAlone) {
    for (int64_t frames = 0; frames < 5; ++frames) {
        const auto track = random_track(frames, 4);
        PoseSmoother smoother(degrees_spec(), {.smooth = true, .fps = kFps});
        const auto out = run(smoother, track);
        ASSERT_EQ(out.size(), track.size());
        for (size_t i = 0; i < out.size(); ++i) {
            EXPECT_EQ(out[i].motion.row, track[i].motion.row);
        }
    }
}

TEST(PoseSmoother, KeepsQuadraticsAndDoesNothingByDefault) {
    auto track = random_track(20, 5);
    for (size_t i = 0; i < track.size(); ++i) {
        const auto x = static_cast<float>(i);
        track[i].motion.row[kYaw] = 0.125F * x * x - 2.0F * x + 3.0F;
    }
    for (const bool smooth : {false, true}) {
        PoseSmoother smoother(degrees_spec(), {.smooth = smooth, .fps = kFps});
        const auto out = run(smoother, track);
        for (size_t i = 0; i < out.size(); ++i) {
            EXPECT_NEAR(out[i].motion.row[kYaw], track[i].motion.row[kYaw], smooth ? 1e-5 : 0.0);
            if (!smooth) {
                EXPECT_EQ(out[i].motion.row, track[i].motion.row);
            }
        }
    }
}

TEST(PoseSmoother, ReportsJerkBeforeAndAfter) {
    auto track = random_track(6, 6, 0.0F);
    // Third difference of the yaw: 1 degree once, at frame 3, then -3, 3.
    track[3].motion.row[kYaw] = 1.0F;
    PoseSmoother smoother(degrees_spec(), {.smooth = true, .fps = kFps});
    run(smoother, track);
    const double degree = std::numbers::pi / 180.0;
    EXPECT_NEAR(smoother.given().peak_jerk, 3.0 * degree * kFps * kFps * kFps, 1e-6);
    EXPECT_NEAR(smoother.given().mean_jerk, 7.0 / 3.0 * degree * kFps * kFps * kFps, 1e-6);
    EXPECT_NEAR(smoother.given().peak_acceleration, 2.0 * degree * kFps * kFps, 1e-6);
    EXPECT_LT(smoother.drawn().peak_jerk, smoother.given().peak_jerk / 2.0);
}

TEST(BoundedFollower, KeepsTheBoundOnAnyTrack) {
    for (unsigned seed = 0; seed < 50; ++seed) {
        std::mt19937 random(seed);
        std::normal_distribution<double> steps(0.0, 1.0 + seed);
        const double most = 0.01 * (1 + seed % 7);
        BoundedFollower follower(most);
        std::vector<double> out;
        double target = 0.0;
        for (int i = 0; i < 300; ++i) {
            if (i % 13 == 0) target += steps(random);
            out.push_back(follower.follow(target + 0.01 * steps(random)));
        }
        for (size_t i = 2; i < out.size(); ++i) {
            EXPECT_LE(std::abs(out[i] - 2.0 * out[i - 1] + out[i - 2]), most * (1.0 + 1e-9));
        }
    }
}

TEST(BoundedFollower, LeavesATrackWithinTheBoundAlone) {
    BoundedFollower follower(0.1);
    for (int i = 0; i < 200; ++i) {
        const double target = 5.0 * std::sin(0.1 * i);  // second differences up to 0.05
        EXPECT_EQ(follower.follow(target), target);
    }
}

TEST(BoundedFollower, ArrivesWithoutOvershootWorthTheName) {
    BoundedFollower follower(0.05);
    double largest = 0.0;
    double last = 0.0;
    for (int i = 0; i < 120; ++i) {
        last = follower.follow(i < 5 ? 0.0 : 10.0);
        largest = std::max(largest, last);
    }
    EXPECT_NEAR(last, 10.0, 1e-6);
    EXPECT_LT(largest, 10.2);
}

TEST(Acceleration, IsChecked) {
    check_acceleration(0.0);
    check_acceleration(12.5);
    EXPECT_THROW(check_acceleration(-1.0), Error);
    EXPECT_THROW(check_acceleration(std::numeric_limits<double>::quiet_NaN()), Error);
}

}  // namespace
}  // namespace newscaster::motion
