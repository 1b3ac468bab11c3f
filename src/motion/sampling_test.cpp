// The parts of the sampler that need no graph: schedule, fusion, smoothing, condition rows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "motion/box_smoother.h"
#include "motion/condition_rows.h"
#include "motion/diffusion_schedule.h"
#include "motion/window_fusion.h"
#include "newscaster/error.h"

namespace newscaster::motion {
namespace {

using ::testing::ElementsAre;

const pack::DiffusionSpec kDiffusion{.timesteps = 1000,
                                     .cosine_s = 0.008,
                                     .default_steps = 4,
                                     .default_seed = 42,
                                     .step_tables = {{4, {999, 930, 820, 550}}}};

TEST(DiffusionSchedule, AlphaBarsFollowTheClosedForm) {
    const auto bars = cosine_alpha_bars(1000, 0.008);
    ASSERT_EQ(bars.size(), 1000U);
    const auto signal = [](double t) {
        const double c = std::cos((t + 0.008) / 1.008 * std::acos(-1.0) / 2.0);
        return c * c;
    };
    // Before the clip of beta takes effect near the end, the product telescopes.
    for (const size_t t : {0U, 1U, 250U, 500U, 900U}) {
        const double wanted = signal(static_cast<double>(t + 1) / 1000.0) / signal(0.0);
        EXPECT_NEAR(bars[t], wanted, 1e-12);
    }
    EXPECT_TRUE(std::is_sorted(bars.rbegin(), bars.rend()));
    EXPECT_GT(bars.back(), 0.0);
}

TEST(DiffusionSchedule, TakesThePackTableElseLinearSteps) {
    EXPECT_THAT(ddim_timesteps(kDiffusion, 4), ElementsAre(999, 930, 820, 550));
    EXPECT_THAT(ddim_timesteps(kDiffusion, 1), ElementsAre(999));
    EXPECT_THAT(ddim_timesteps(kDiffusion, 3), ElementsAre(999, 665, 332));  // -1 + k * 1000 / 3
    const auto every = ddim_timesteps(kDiffusion, 1000);
    for (size_t i = 0; i < every.size(); ++i) {
        EXPECT_EQ(every[i], 999 - static_cast<int64_t>(i));
    }
    EXPECT_THROW(static_cast<void>(ddim_timesteps(kDiffusion, 0)), Error);
    EXPECT_THROW(static_cast<void>(ddim_timesteps(kDiffusion, 1001)), Error);
}

TEST(DiffusionSchedule, WeightsKeepTheVarianceAndEndWithTheSample) {
    const auto plan = ddim_plan(kDiffusion, 4);
    ASSERT_EQ(plan.size(), 4U);
    for (const auto& step : plan) {
        EXPECT_NEAR(step.sample_weight * step.sample_weight + step.noise_weight * step.noise_weight,
                    1.0F, 1e-6F);
    }
    EXPECT_FLOAT_EQ(plan[0].sample_weight,
                    static_cast<float>(std::sqrt(cosine_alpha_bars(1000, 0.008)[930])));
    EXPECT_EQ(plan.back().sample_weight, 1.0F);
    EXPECT_EQ(plan.back().noise_weight, 0.0F);
}

TEST(WindowFusion, CrossFadesTheOverlapAndRemembersTheFrameBeforeIt) {
    WindowFusion fusion({.window = 5, .overlap = 2}, {7.0F});
    EXPECT_THAT(fusion.previous_frame(), ElementsAre(7.0F));
    EXPECT_TRUE(fusion.tail().empty());
    EXPECT_THAT(fusion.add(std::vector<float>{0, 1, 2, 10, 20}), ElementsAre(0, 1, 2));
    EXPECT_THAT(fusion.tail(), ElementsAre(10, 20));
    EXPECT_THAT(fusion.previous_frame(), ElementsAre(2));
    // Weight of the newer window: 0, then 1/2.
    EXPECT_THAT(fusion.add(std::vector<float>{100, 40, 5, 6, 8}), ElementsAre(10, 30, 5));
    EXPECT_THAT(fusion.tail(), ElementsAre(6, 8));
    EXPECT_THAT(fusion.previous_frame(), ElementsAre(5));
}

TEST(WindowFusion, ATrackThatEveryWindowAgreesOnIsKept) {
    // Two dims; overlap longer than half a window, and none.
    for (const int64_t overlap : {0, 1, 4}) {
        WindowFusion fusion({.window = 5, .overlap = overlap}, {0.0F, 0.0F});
        std::vector<float> track;
        for (int64_t begin = 0; begin < 30; begin += 5 - overlap) {
            std::vector<float> rows;
            for (int64_t i = begin; i < begin + 5; ++i) {
                rows.push_back(static_cast<float>(i));
                rows.push_back(static_cast<float>(-2 * i));
            }
            const auto final_rows = fusion.add(rows);
            track.insert(track.end(), final_rows.begin(), final_rows.end());
        }
        for (size_t i = 0; i < track.size(); i += 2) {
            EXPECT_FLOAT_EQ(2.0F * track[i], static_cast<float>(i));
            EXPECT_FLOAT_EQ(track[i + 1], -static_cast<float>(i));
        }
    }
}

TEST(BoxSmoother, AveragesTheRowsThatExistWithTheRightDelay) {
    // Dim 0 over three frames, dim 2 over five; dim 1 is left alone.
    BoxSmoother smoother(
        {{.offset = 0, .size = 1, .frames = 3}, {.offset = 2, .size = 1, .frames = 5}}, 3);
    std::vector<float> rows;
    for (int i = 0; i < 6; ++i) {
        const auto value = static_cast<float>(i * i);
        const auto ready = smoother.push(std::vector<float>{value, value, value});
        EXPECT_EQ(ready.size(), i < 2 ? 0U : 3U);
        rows.insert(rows.end(), ready.begin(), ready.end());
    }
    const auto rest = smoother.finish();
    rows.insert(rows.end(), rest.begin(), rest.end());
    const std::vector<float> wanted{0.5F,  0.0F,         5.0F / 3.0F,  5.0F / 3.0F, 1.0F,
                                    3.5F,  14.0F / 3.0F, 4.0F,         6.0F,        29.0F / 3.0F,
                                    9.0F,  11.0F,        50.0F / 3.0F, 16.0F,       54.0F / 4.0F,
                                    20.5F, 25.0F,        50.0F / 3.0F};
    EXPECT_THAT(rows, ::testing::Pointwise(::testing::FloatEq(), wanted));
}

TEST(BoxSmoother, WithoutFiltersRowsPassAtOnce) {
    BoxSmoother smoother({}, 2);
    EXPECT_THAT(smoother.push(std::vector<float>{1, 2, 3, 4}), ElementsAre(1, 2, 3, 4));
    EXPECT_TRUE(smoother.finish().empty());
}

TEST(BoxSmoother, ATrackShorterThanTheFilterIsItsMean) {
    BoxSmoother smoother({{.offset = 0, .size = 1, .frames = 9}}, 1);
    EXPECT_TRUE(smoother.push(std::vector<float>{1, 2, 6}).empty());
    EXPECT_THAT(smoother.finish(), ElementsAre(3, 3, 3));
}

pack::ConditionSpan span(pack::ConditionKind kind, int64_t size) {
    pack::ConditionSpan result;
    result.kind = kind;
    result.size = size;
    return result;
}

pack::Manifest manifest_with(std::vector<pack::ConditionSpan> conditions) {
    pack::Manifest manifest;
    manifest.audio.feature_dims = 2;
    for (auto& span : conditions) {
        span.offset = manifest.motion.condition_dims;
        manifest.motion.condition_dims += span.size;
    }
    manifest.motion.conditions = std::move(conditions);
    return manifest;
}

ConditionRows rows(const pack::Manifest& manifest, const std::string& emotion,
                   const Controls& controls = {}, const AvatarConditions& avatar = {}) {
    return {manifest, ControlTrack(manifest, controls, emotion), avatar, 1};
}

TEST(ConditionRows, PutsEverySpanInItsPlace) {
    const auto manifest = manifest_with({span(pack::ConditionKind::blink_mask, 1),
                                         span(pack::ConditionKind::audio, 2),
                                         {.kind = pack::ConditionKind::emotion,
                                          .size = 3,
                                          .labels = {"sad", "calm", "glad"},
                                          .default_label = "calm"}});
    std::vector<float> row(6, -1.0F);
    rows(manifest, "").fill(0, std::vector<float>{0.25F, 0.5F}, row);
    EXPECT_THAT(row, ElementsAre(0.0F, 0.25F, 0.5F, 0.0F, 1.0F, 0.0F));
    rows(manifest, "glad").fill(0, std::vector<float>{0.25F, 0.5F}, row);
    EXPECT_THAT(row, ElementsAre(0.0F, 0.25F, 0.5F, 0.0F, 0.0F, 1.0F));
}

TEST(ConditionRows, RefusesWhatThePackCannotDo) {
    const auto plain = manifest_with({span(pack::ConditionKind::audio, 2)});
    EXPECT_NO_THROW(rows(plain, ""));
    EXPECT_THROW(rows(plain, "glad"), Error);
    const auto narrow = manifest_with({span(pack::ConditionKind::audio, 1)});
    EXPECT_THROW(rows(narrow, ""), Error);
}

}  // namespace
}  // namespace newscaster::motion
