#include "motion/cadence_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <random>
#include <set>

#include "newscaster/error.h"

namespace newscaster::motion {
namespace {

// A face of six keypoints: two lips, two of the eyes, two elsewhere.
pack::KeypointSpec face() {
    pack::KeypointSpec spec;
    spec.count = 6;
    spec.groups = {{"lips", {0, 1}}, {"eyes", {2, 3}}};
    return spec;
}

struct Pose {
    double mouth = 0.05;  // crop half widths
    double eyes = 0.04;
    double x = 0.0;
    double level_db = -30.0;
};

CadenceInput input_of(const Pose& pose) {
    CadenceInput input;
    const auto f = [](double v) { return static_cast<float>(v); };
    input.shape = {0,
                   0.3F,
                   0,
                   0,
                   f(0.3 + pose.mouth),
                   0,
                   -0.2F,
                   -0.1F,
                   0,
                   0.2F,
                   f(-0.1 + pose.eyes),
                   0,
                   -0.5F,
                   0.0F,
                   0,
                   0.5F,
                   0.1F,
                   0};
    input.keypoints = input.shape;
    for (size_t i = 0; i < input.keypoints.size(); i += 3) input.keypoints[i] += f(pose.x);
    input.rotation = quaternion_of(0, 40.0 * pose.x, 0);
    input.level_db = pose.level_db;
    return input;
}

using Track = std::vector<Pose>;

Track track(int frames, const std::function<void(int, Pose&)>& change = {}) {
    Track result(static_cast<size_t>(frames));
    for (int t = 0; change && t < frames; ++t) change(t, result[static_cast<size_t>(t)]);
    return result;
}

std::vector<CadenceStep> plan(const CadenceOptions& options, const Track& poses) {
    CadencePlanner planner(options, face());
    std::vector<CadenceStep> steps;
    for (const Pose& pose : poses) {
        for (auto& step : planner.push(input_of(pose))) steps.push_back(std::move(step));
    }
    for (auto& step : planner.finish()) steps.push_back(std::move(step));
    return steps;
}

std::map<int64_t, CadenceStep> by_frame(const std::vector<CadenceStep>& steps) {
    std::map<int64_t, CadenceStep> frames;
    for (const auto& step : steps) frames.emplace(step.frame.index, step);
    return frames;
}

double neural_share(const std::vector<CadenceStep>& steps) {
    const auto keys = std::ranges::count_if(steps, [](const auto& s) { return s.frame.neural; });
    return static_cast<double>(keys) / static_cast<double>(steps.size());
}

// Speech-like: the mouth wanders, the head sways, now and then a blink.
Track speech(int frames, unsigned seed, double liveliness) {
    std::mt19937 random(seed);
    std::normal_distribution<double> noise;
    double mouth = 0.0;
    return track(frames, [&](int t, Pose& pose) {
        mouth = 0.7 * mouth + liveliness * noise(random);
        pose.mouth = 0.05 + 0.02 * std::abs(mouth);
        pose.x = 0.05 * std::sin(0.05 * t);
        if (t % 70 == 41) pose.eyes = 0.005;
        if (t % 70 == 40 || t % 70 == 42) pose.eyes = 0.02;
    });
}

CadenceOptions stride(int n, StrideMode mode = StrideMode::warp) {
    CadenceOptions options;
    options.stride = n;
    options.mode = mode;
    return options;
}

TEST(CadencePlan, FixedStridesOnAStillFace) {
    for (const int n : {1, 2, 3}) {
        const auto frames = by_frame(plan(stride(n), track(20)));
        ASSERT_EQ(frames.size(), 20U);
        for (const auto& [index, step] : frames) {
            EXPECT_EQ(step.frame.neural, index % n == 0 || index == 19) << n << " " << index;
        }
        EXPECT_EQ(frames.at(0).frame.reason, "first");
        EXPECT_EQ(frames.at(n).frame.reason, "stride");
    }
    EXPECT_EQ(by_frame(plan(stride(3), track(21))).at(20).frame.reason, "last");
    EXPECT_TRUE(plan(stride(2), {}).empty());
    EXPECT_EQ(plan(stride(2), track(1)).size(), 1U);
}

// The seeds' fault: a blink that peaks between two keyframes of stride 3 is drawn half open.
TEST(CadencePlan, BlinkPeaksAreKeyframesWhereverTheyFall) {
    for (const int n : {0, 2, 3}) {
        for (const StrideMode mode : {StrideMode::warp, StrideMode::frame}) {
            for (int peak = 10; peak < 22; ++peak) {
                const auto frames = by_frame(plan(stride(n, mode), track(40, [&](int t, Pose& p) {
                                                      const int distance = std::abs(t - peak);
                                                      if (distance < 3)
                                                          p.eyes = 0.005 + 0.012 * distance;
                                                  })));
                EXPECT_TRUE(frames.at(peak).frame.neural) << n << " " << peak;
                EXPECT_EQ(frames.at(peak).frame.reason, "blink");
            }
        }
    }
}

TEST(CadencePlan, ClosuresAreKeyframesWhereverTheyFall) {
    for (const int n : {0, 2, 3}) {
        for (int closed = 10; closed < 22; ++closed) {
            const auto frames = by_frame(plan(stride(n), track(40, [&](int t, Pose& p) {
                                                  p.mouth = 0.06;
                                                  if (t == closed) p.mouth = 0.01;
                                                  if (t == closed - 1) p.mouth = 0.03;
                                              })));
            EXPECT_TRUE(frames.at(closed).frame.neural) << n << " " << closed;
            EXPECT_EQ(frames.at(closed).frame.reason, "closure");
        }
    }
}

TEST(CadencePlan, TremorIsNoClosure) {
    const auto frames = by_frame(plan(
        stride(3), track(40, [](int t, Pose& p) { p.mouth = 0.05 + (t % 2 == 0 ? 0.001 : 0.0); })));
    for (const auto& [index, step] : frames) EXPECT_NE(step.frame.reason, "closure") << index;
}

TEST(CadencePlan, OnsetsOfSoundAreKeyframesOfTheAdaptiveStride) {
    const auto poses = track(40, [](int t, Pose& p) { p.level_db = t < 18 ? -60.0 : -20.0; });
    EXPECT_EQ(by_frame(plan(stride(0), poses)).at(18).frame.reason, "onset");
    const auto quiet = track(40, [](int t, Pose& p) { p.level_db = t < 18 ? -90.0 : -60.0; });
    EXPECT_NE(by_frame(plan(stride(0), quiet)).at(18).frame.reason, "onset");
}

TEST(CadencePlan, EveryFrameOnceAndAfterTheKeyframesItIsMadeFrom) {
    for (const int n : {0, 1, 2, 3}) {
        for (const StrideMode mode : {StrideMode::warp, StrideMode::frame}) {
            const auto steps = plan(stride(n, mode), speech(300, 5, 1.0));
            ASSERT_EQ(steps.size(), 300U);
            std::set<int64_t> keys;
            std::set<int64_t> seen;
            for (const auto& step : steps) {
                const auto& frame = step.frame;
                EXPECT_TRUE(seen.insert(frame.index).second);
                EXPECT_EQ(frame.neural, step.sources.empty());
                if (frame.neural) keys.insert(frame.index);
                double priors = 0.0;
                for (const auto& source : step.sources) {
                    EXPECT_TRUE(keys.contains(source.index));
                    priors += source.prior;
                }
                if (frame.neural) continue;
                EXPECT_NEAR(priors, 1.0, 1e-12);
                EXPECT_LT(frame.key_before, frame.index);
                EXPECT_GT(frame.key_after, frame.index);
                EXPECT_LE(frame.key_after - frame.key_before, n == 0 ? 4 : n);
                EXPECT_LE(step.sources.size(),
                          mode == StrideMode::frame ? 2 : CadencePlanner::kBlendSources);
            }
        }
    }
}

// What is planned depends on a bounded look-ahead only.
TEST(CadencePlan, TheFutureBeyondTheLookAheadChangesNothing) {
    const auto whole = speech(200, 6, 1.0);
    for (const int n : {0, 2, 3}) {
        const auto full = by_frame(plan(stride(n), whole));
        for (const int length : {60, 61, 62, 63}) {
            CadencePlanner planner(stride(n), face());
            int64_t settled = -1;
            for (int t = 0; t < length; ++t) {
                for (const auto& step : planner.push(input_of(whole[static_cast<size_t>(t)]))) {
                    const auto& same = full.at(step.frame.index);
                    EXPECT_EQ(step.frame.neural, same.frame.neural);
                    EXPECT_EQ(step.frame.reason, same.frame.reason);
                    settled = std::max(settled, step.frame.index);
                }
            }
            EXPECT_GE(settled, length - 1 - 2 * CadencePlanner::kLongestSegment -
                                   CadencePlanner::kTurnReach);
        }
    }
}

TEST(CadencePlan, AdaptiveKeepsItsTolerancesAndSavesWhereItCan) {
    EXPECT_LT(neural_share(plan(stride(0), track(200))), 0.27);  // still: one in four
    CadenceOptions free = stride(0);
    free.max_neural_share = 1.0;
    const auto steps = plan(free, speech(400, 7, 1.0));
    for (const auto& step : steps) EXPECT_LE(step.strain, 1.0) << step.frame.index;
    EXPECT_LT(neural_share(steps), 1.0);
}

TEST(CadencePlan, TheShareOfKeyframesStaysInItsBudget) {
    const auto wild = speech(2000, 8, 3.0);
    CadenceOptions free = stride(0, StrideMode::frame);
    free.max_neural_share = 1.0;
    const double wanted = neural_share(plan(free, wild));
    CadenceOptions bound = free;
    bound.max_neural_share = 0.6;
    const double kept = neural_share(plan(bound, wild));
    EXPECT_GT(wanted, 0.7);
    EXPECT_LT(kept, 0.65);
}

TEST(CadencePlan, OldKeyframesOfAnotherPictureAreNotUsed) {
    CadencePlanner planner(stride(3), face());
    const auto poses = speech(60, 9, 1.0);
    std::vector<CadenceStep> steps;
    for (size_t t = 0; t < poses.size(); ++t) {
        auto input = input_of(poses[t]);
        input.source = static_cast<int64_t>(t);
        for (auto& step : planner.push(std::move(input))) steps.push_back(std::move(step));
    }
    for (const auto& step : steps) EXPECT_LE(step.sources.size(), 2U);
}

TEST(CadencePlan, RefusesOptionsOutOfRange) {
    const auto refused = [](const std::function<void(CadenceOptions&)>& change) {
        CadenceOptions options;
        change(options);
        try {
            check_cadence(options);
        } catch (const Error& error) {
            return error.code() == ErrorCode::bad_input;
        }
        return false;
    };
    EXPECT_FALSE(refused([](auto&) {}));
    EXPECT_TRUE(refused([](auto& o) { o.stride = 4; }));
    EXPECT_TRUE(refused([](auto& o) { o.stride = -1; }));
    EXPECT_TRUE(refused([](auto& o) { o.longest_segment = 5; }));
    EXPECT_TRUE(refused([](auto& o) { o.max_neural_share = 0.0; }));
    EXPECT_TRUE(refused([](auto& o) { o.lips_residual = std::nan(""); }));
    EXPECT_TRUE(refused([](auto& o) { o.turn = 2.0; }));
    EXPECT_TRUE(refused([](auto& o) { o.onset_floor_db = 3.0; }));
}

TEST(FrameLevels, LoudnessOfEachFrameHoweverItArrives) {
    std::vector<float> sound(1000, 0.0F);
    for (size_t i = 100; i < 200; ++i) sound[i] = i % 2 == 0 ? 1.0F : -1.0F;  // 0 dB
    for (size_t i = 200; i < 300; ++i) sound[i] = 0.1F;                       // -20 dB
    for (const size_t piece : {1U, 7U, 100U, 1000U}) {
        FrameLevels levels(100);
        for (size_t i = 0; i < sound.size(); i += piece) {
            levels.push(std::span(sound).subspan(i, std::min(piece, sound.size() - i)));
        }
        EXPECT_EQ(levels.take(0), -100.0);
        EXPECT_NEAR(levels.take(1), 0.0, 1e-9);
        EXPECT_NEAR(levels.take(2), -20.0, 1e-5);
        EXPECT_EQ(levels.take(9), -100.0);
        EXPECT_EQ(levels.take(20), -100.0);
    }
}

}  // namespace
}  // namespace newscaster::motion
