#include "pipeline/task_board.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <thread>

namespace newscaster::pipeline {
namespace {

RenderTask key_task(int64_t index) {
    RenderTask task;
    task.frame.index = index;
    task.key = std::make_shared<Keyframe>();
    task.key->index = index;
    return task;
}

RenderTask between(int64_t index, const RenderTask& before, const RenderTask& after) {
    RenderTask task;
    task.frame.index = index;
    task.sources = {{before.key, 0.5}, {after.key, 0.5}};
    return task;
}

TEST(TaskBoard, HandsOutWhatCanBeDrawnInOrder) {
    TaskBoard board(8);
    const std::stop_source stop;
    const auto first = key_task(0);
    const auto second = key_task(3);
    const auto third = key_task(5);
    ASSERT_TRUE(board.push(first, stop.get_token()));
    ASSERT_TRUE(board.push(second, stop.get_token()));
    ASSERT_TRUE(board.push(between(1, first, second), stop.get_token()));
    ASSERT_TRUE(board.push(third, stop.get_token()));
    board.close();
    EXPECT_EQ(board.pop(stop.get_token())->frame.index, 0);
    EXPECT_EQ(board.pop(stop.get_token())->frame.index, 3);
    EXPECT_EQ(board.pop(stop.get_token())->frame.index, 5);  // 1 waits for its keyframes
    board.publish(*first.key);
    board.publish(*second.key);
    EXPECT_EQ(board.pop(stop.get_token())->frame.index, 1);
    EXPECT_FALSE(board.pop(stop.get_token()).has_value());
}

TEST(TaskBoard, AStopEndsEveryWait) {
    TaskBoard board(1);
    std::stop_source stop;
    const auto first = key_task(0);
    ASSERT_TRUE(board.push(between(1, first, first), stop.get_token()));  // never ready
    std::atomic<int> ended{0};
    {
        const std::jthread pusher([&] {
            EXPECT_FALSE(board.push(first, stop.get_token()));
            ++ended;
        });
        const std::jthread popper([&] {
            EXPECT_FALSE(board.pop(stop.get_token()).has_value());
            ++ended;
        });
        stop.request_stop();
    }
    EXPECT_EQ(ended, 2);
}

// Many workers, a small board: everything is drawn once, and no frame before its keyframes.
TEST(TaskBoard, WorkersSeeCompleteKeyframes) {
    constexpr int64_t kSegments = 400;
    TaskBoard board(3);
    const std::stop_source stop;
    std::mutex mutex;
    std::set<int64_t> drawn;
    const auto work = [&] {
        while (const auto task = board.pop(stop.get_token())) {
            if (task->key) {
                task->key->crop.assign(64, static_cast<float>(task->key->index));
                board.publish(*task->key);
            }
            for (const auto& source : task->sources) {
                EXPECT_EQ(source.key->crop.size(), 64U);
                EXPECT_EQ(source.key->crop.back(), static_cast<float>(source.key->index));
            }
            const std::lock_guard lock(mutex);
            EXPECT_TRUE(drawn.insert(task->frame.index).second);
        }
    };
    {
        std::vector<std::jthread> workers;
        workers.reserve(4);
        for (int i = 0; i < 4; ++i) workers.emplace_back(work);
        auto before = key_task(0);
        ASSERT_TRUE(board.push(before, stop.get_token()));
        for (int64_t segment = 1; segment <= kSegments; ++segment) {
            auto after = key_task(3 * segment);
            ASSERT_TRUE(board.push(after, stop.get_token()));
            for (int64_t t = 3 * segment - 2; t < 3 * segment; ++t) {
                ASSERT_TRUE(board.push(between(t, before, after), stop.get_token()));
            }
            before = std::move(after);
        }
        board.close();
    }
    EXPECT_EQ(static_cast<int64_t>(drawn.size()), 3 * kSegments + 1);
}

}  // namespace
}  // namespace newscaster::pipeline
