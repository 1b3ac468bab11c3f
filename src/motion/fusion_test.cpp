// What optional manifest entries change in the sampler and in the joining of windows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "motion/diffusion_schedule.h"
#include "motion/window_fusion.h"

namespace newscaster::motion {
namespace {

using ::testing::ElementsAre;

TEST(StochasticPlan, KeepsTheVarianceAndTheDeterministicPlan) {
    const pack::DiffusionSpec spec{.timesteps = 1000,
                                   .cosine_s = 0.008,
                                   .default_steps = 4,
                                   .default_seed = 42,
                                   .step_tables = {}};
    const auto plain = ddim_plan(spec, 50);
    const auto noisy = ddim_plan(spec, 50, 1.0);
    const auto bars = cosine_alpha_bars(1000, 0.008);
    const auto steps = ddim_timesteps(spec, 50);
    ASSERT_EQ(noisy.size(), 50U);
    for (size_t i = 0; i + 1 < noisy.size(); ++i) {
        const auto& step = noisy[i];
        EXPECT_EQ(plain[i].fresh_weight, 0.0F);
        EXPECT_EQ(step.sample_weight, plain[i].sample_weight);
        EXPECT_NEAR(step.sample_weight * step.sample_weight +
                        step.noise_weight * step.noise_weight +
                        step.fresh_weight * step.fresh_weight,
                    1.0F, 1e-6F);
        const double now = bars[static_cast<size_t>(steps[i])];
        const double next = bars[static_cast<size_t>(steps[i + 1])];
        const double sigma = std::sqrt((1 - now / next) * (1 - next) / (1 - now));
        EXPECT_NEAR(step.fresh_weight, sigma, 1e-6);
    }
    EXPECT_EQ(noisy.back().sample_weight, 1.0F);
    EXPECT_EQ(noisy.back().noise_weight, 0.0F);
    EXPECT_EQ(noisy.back().fresh_weight, 0.0F);
}

TEST(OnlineFusion, FadesTheFramesBeforeTheNewOnes) {
    // Windows of 5, overlap 3: two new rows each, both faded with the next window's rows 1 and 2.
    WindowFusion fusion({.window = 5, .overlap = 3, .online = true}, {7.0F});
    EXPECT_THAT(fusion.add(std::vector<float>{0, 1, 2, 10, 20}), ElementsAre(0, 1, 2));
    EXPECT_THAT(fusion.first_frame(), ElementsAre(0));
    EXPECT_THAT(fusion.previous_frame(), ElementsAre(1));  // the next window starts at row 2
    EXPECT_THAT(fusion.tail(), ElementsAre(10, 20));
    EXPECT_THAT(fusion.add(std::vector<float>{9, 100, 40, 5, 6}), ElementsAre(10, 30));
    EXPECT_THAT(fusion.tail(), ElementsAre(5, 6));
    EXPECT_THAT(fusion.previous_frame(), ElementsAre(10));
    EXPECT_THAT(fusion.add(std::vector<float>{0, 7, 8, 1, 2}), ElementsAre(5, 7));
}

TEST(FusionReset, ReturnsToTheInitialFrameButForTheKeptDims) {
    WindowFusion fusion({.window = 3,
                         .overlap = 1,
                         .reset = {.interval_windows = 2, .kept_begin = 1, .kept_end = 2}},
                        {70, 71, 72});
    const std::vector<float> rows{1, 2, 3, 4, 5, 6, 7, 8, 9};
    static_cast<void>(fusion.add(rows));
    EXPECT_THAT(fusion.previous_frame(), ElementsAre(4, 5, 6));
    static_cast<void>(fusion.add(rows));
    EXPECT_THAT(fusion.previous_frame(), ElementsAre(70, 5, 72));
    static_cast<void>(fusion.add(rows));
    EXPECT_THAT(fusion.previous_frame(), ElementsAre(4, 5, 6));
}

// Upstream's way of doing it, on a whole track: fuse, then filter the fused rows and one more.
std::vector<float> whole_track(const std::vector<std::vector<float>>& windows, size_t overlap,
                               size_t half) {
    std::vector<float> track;
    const auto filter = [&](size_t begin, size_t end) {
        const auto raw = track;
        for (size_t i = begin; i < end; ++i) {
            double sum = 0.0;
            const size_t first = i - std::min(i, half);
            const size_t last = std::min(i + half, raw.size() - 1);
            for (size_t k = first; k <= last; ++k) sum += raw[k];
            track[i] = static_cast<float>(sum / static_cast<double>(last - first + 1));
        }
    };
    for (const auto& window : windows) {
        if (track.empty()) {
            track = window;
            filter(0, track.size());
            continue;
        }
        const size_t joint = track.size();
        for (size_t i = 0; i < overlap; ++i) {
            float& old = track[joint - overlap + i];
            const double weight = static_cast<double>(i) / static_cast<double>(overlap);
            old = static_cast<float>(old * (1.0 - weight) + window[i] * weight);
        }
        track.insert(track.end(), window.begin() + static_cast<std::ptrdiff_t>(overlap),
                     window.end());
        filter(joint - overlap, joint + 1);
    }
    return track;
}

TEST(FusionFilters, StreamingEqualsTheWholeTrack) {
    std::vector<std::vector<float>> windows(6, std::vector<float>(12));
    for (size_t k = 0; k < windows.size(); ++k) {
        for (size_t i = 0; i < windows[k].size(); ++i) {
            windows[k][i] = static_cast<float>(std::sin(static_cast<double>(17 * k + 5 * i * i)));
        }
    }
    for (const int64_t frames : {3, 5}) {
        WindowFusion fusion(
            {.window = 12, .overlap = 4, .filters = {{.offset = 0, .size = 1, .frames = frames}}},
            {0.0F});
        std::vector<float> track;
        for (const auto& window : windows) {
            const auto ready = fusion.add(window);
            track.insert(track.end(), ready.begin(), ready.end());
        }
        track.insert(track.end(), fusion.tail().begin(), fusion.tail().end());
        const auto wanted = whole_track(windows, 4, static_cast<size_t>(frames / 2));
        EXPECT_THAT(track, ::testing::Pointwise(::testing::FloatEq(), wanted));
    }
}

}  // namespace
}  // namespace newscaster::motion
