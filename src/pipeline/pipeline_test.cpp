#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <random>
#include <thread>
#include <vector>

#include "newscaster/error.h"
#include "pipeline/frame_pool.h"
#include "pipeline/ordered_queue.h"
#include "pipeline/stage_meter.h"

namespace newscaster::pipeline {
namespace {

TEST(OrderedQueue, RestoresOrderOfRacingWorkers) {
    constexpr int64_t kTotal = 500;
    OrderedQueue<int64_t> queue(8);
    std::atomic<int64_t> next{0};
    std::vector<std::jthread> workers;
    for (unsigned seed = 0; seed < 4; ++seed) {
        workers.emplace_back([&, seed] {
            std::mt19937 random(seed);
            for (int64_t index = next++; index < kTotal; index = next++) {
                std::this_thread::sleep_for(std::chrono::microseconds(random() % 200));
                ASSERT_TRUE(queue.push(index, index * 3, {}));
            }
        });
    }
    queue.finish(kTotal);
    for (int64_t index = 0; index < kTotal; ++index) EXPECT_EQ(queue.pop({}), index * 3);
    EXPECT_EQ(queue.pop({}), std::nullopt);
}

TEST(OrderedQueue, HoldsBackWorkersThatAreTooFarAhead) {
    OrderedQueue<int> queue(2);
    std::atomic<bool> pushed{false};
    std::jthread ahead([&] {
        queue.push(2, 2, {});
        pushed = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    EXPECT_FALSE(pushed);
    queue.push(0, 0, {});
    EXPECT_EQ(queue.pop({}), 0);
    ahead.join();
    EXPECT_TRUE(pushed);
}

TEST(OrderedQueue, StopWakesEverybody) {
    OrderedQueue<int> queue(1);
    std::stop_source stop;
    std::jthread producer([&] { EXPECT_FALSE(queue.push(5, 5, stop.get_token())); });
    std::jthread consumer([&] { EXPECT_EQ(queue.pop(stop.get_token()), std::nullopt); });
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    stop.request_stop();
}

TEST(OrderedQueue, FinishWithNothingEndsAtOnce) {
    OrderedQueue<int> queue(1);
    queue.finish(0);
    EXPECT_EQ(queue.pop({}), std::nullopt);
}

Nv12Image filled(int width, int height, uint8_t value) {
    const auto area = static_cast<size_t>(width) * static_cast<size_t>(height);
    return {.width = width,
            .height = height,
            .y = std::vector<uint8_t>(area, value),
            .uv = std::vector<uint8_t>(area / 2, value)};
}

TEST(FramePool, ReusesCanvasesAndRestoresTheBackground) {
    FramePool pool(4, 2, {25, 1});
    const Nv12Image first = filled(4, 2, 10);
    const Nv12Image second = filled(4, 2, 20);
    const uint8_t* memory = nullptr;
    {
        auto slot = pool.acquire(0, first);
        memory = slot.y();
        slot.y()[0] = 99;  // inside the ROI: redrawn by every paste
        const auto frame = pool.publish(std::move(slot), 50);
        EXPECT_EQ(frame->index, 50);
        EXPECT_DOUBLE_EQ(frame->timestamp_s, 2.0);
        EXPECT_EQ(frame->y[1], 10);
    }
    auto again = pool.acquire(0, first);
    EXPECT_EQ(again.y(), memory);
    EXPECT_EQ(again.y()[0], 99);
    { const auto frame = pool.publish(std::move(again), 51); }
    auto other = pool.acquire(1, second);
    EXPECT_TRUE(std::all_of(other.y(), other.y() + 8, [](uint8_t v) { return v == 20; }));
}

TEST(FramePool, FramesOutliveThePool) {
    VideoFramePtr frame;
    {
        FramePool pool(4, 2, {25, 1});
        frame = pool.publish(pool.acquire(0, filled(4, 2, 7)), 0);
    }
    EXPECT_EQ(frame->uv[3], 7);
}

TEST(StageMeter, DerivesStatistics) {
    const auto origin = Clock::now();
    StageMeter meter("decode", origin);
    for (int i = 1; i <= 100; ++i) {
        const auto start = origin + std::chrono::milliseconds(1000 + i);
        meter.record(start, start + std::chrono::milliseconds(i));
    }
    const StageStats stats = meter.stats();
    EXPECT_EQ(stats.calls, 100);
    EXPECT_NEAR(stats.mean_ms, 50.5, 1e-6);
    EXPECT_NEAR(stats.min_ms, 1.0, 1e-6);
    EXPECT_NEAR(stats.max_ms, 100.0, 1e-6);
    EXPECT_NEAR(stats.p95_ms, 95.0, 95.0 * 0.06);
    EXPECT_NEAR(stats.first_start_s, 1.001, 1e-9);
    EXPECT_NEAR(stats.last_end_s, 1.2, 1e-9);
}

TEST(StageMeter, IsEmptyBeforeTheFirstCall) {
    const StageMeter meter("warp", Clock::now());
    EXPECT_EQ(meter.stats().calls, 0);
    EXPECT_EQ(meter.stats().p95_ms, 0.0);
}

}  // namespace
}  // namespace newscaster::pipeline
