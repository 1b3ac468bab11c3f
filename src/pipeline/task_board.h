// What the render workers of a cadence draw next: keyframes, and frames in between once the
// keyframes they are made from are there.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <utility>
#include <vector>

#include "core/stage_types.h"
#include "warp/latent_blend.h"

namespace newscaster::pipeline {

// What a keyframe leaves for the frames made from it. Written by the worker that draws it, before
// TaskBoard::publish; read-only from then on.
struct Keyframe {
    int64_t index = 0;
    std::vector<float> keypoints;
    warp::Latents latents;    // stride mode warp
    std::vector<float> crop;  // stride mode frame
    size_t place = 0;         // where a BatchCadence keeps what it left
    bool ready = false;       // guarded by the board
};

struct RenderTask {
    struct Source {
        std::shared_ptr<const Keyframe> key;
        double prior = 0.0;
    };
    DrivingFrame frame;
    std::shared_ptr<Keyframe> key;  // to be filled by a keyframe; empty for a frame in between
    std::vector<Source> sources;    // of a frame in between
};

// Bounded; safe for any number of producers and consumers. Every task is pushed after the keyframes
// it is made from.
class TaskBoard {
  public:
    // capacity >= 1
    explicit TaskBoard(size_t capacity) : capacity_(capacity) {}

    // Blocks while full. False when a stop was requested.
    bool push(RenderTask task, const std::stop_token& stop) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, stop, [&] { return tasks_.size() < capacity_; });
        if (stop.stop_requested()) return false;
        tasks_.push_back(std::move(task));
        changed_.notify_all();
        return true;
    }

    // The first task that can be drawn now; waits for one. nullopt when closed and empty, or when a
    // stop was requested.
    std::optional<RenderTask> pop(const std::stop_token& stop) {
        std::unique_lock lock(mutex_);
        auto found = tasks_.end();
        changed_.wait(lock, stop, [&] {
            found = std::ranges::find_if(tasks_, can_be_drawn);
            return found != tasks_.end() || (closed_ && tasks_.empty());
        });
        if (stop.stop_requested() || found == tasks_.end()) return std::nullopt;
        RenderTask task = std::move(*found);
        tasks_.erase(found);
        changed_.notify_all();
        return task;
    }

    // The keyframe is complete.
    void publish(Keyframe& key) {
        const std::lock_guard lock(mutex_);
        key.ready = true;
        changed_.notify_all();
    }

    // No more pushes.
    void close() {
        const std::lock_guard lock(mutex_);
        closed_ = true;
        changed_.notify_all();
    }

  private:
    static bool can_be_drawn(const RenderTask& task) {
        return std::ranges::all_of(task.sources,
                                   [](const auto& source) { return source.key->ready; });
    }

    const size_t capacity_;
    std::mutex mutex_;
    std::condition_variable_any changed_;
    std::deque<RenderTask> tasks_;
    bool closed_ = false;
};

}  // namespace newscaster::pipeline
