// Puts results of parallel workers back in index order, with back-pressure.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <utility>

namespace newscaster::pipeline {

// Indices start at 0 and are pushed once each, by any thread. A push that is `capacity` or more
// ahead of the next index to be popped blocks; with jobs handed out in order this cannot deadlock.
template <typename T>
class OrderedQueue {
  public:
    explicit OrderedQueue(int64_t capacity) : capacity_(capacity) {}

    // False when a stop was requested.
    bool push(int64_t index, T value, const std::stop_token& stop) {
        std::unique_lock lock(mutex_);
        room_.wait(lock, stop, [&] { return index < next_ + capacity_; });
        if (stop.stop_requested()) return false;
        waiting_.emplace(index, std::move(value));
        arrived_.notify_all();
        return true;
    }

    // The next index in order. nullopt when all `total` were popped (see finish) or on stop.
    std::optional<T> pop(const std::stop_token& stop) {
        std::unique_lock lock(mutex_);
        arrived_.wait(lock, stop, [&] { return waiting_.contains(next_) || next_ == total_; });
        if (stop.stop_requested() || next_ == total_) return std::nullopt;
        auto node = waiting_.extract(next_);
        ++next_;
        room_.notify_all();
        return std::move(node.mapped());
    }

    // There are exactly `total` indices.
    void finish(int64_t total) {
        const std::lock_guard lock(mutex_);
        total_ = total;
        arrived_.notify_all();
    }

  private:
    const int64_t capacity_;
    std::mutex mutex_;
    std::condition_variable_any room_;
    std::condition_variable_any arrived_;
    std::map<int64_t, T> waiting_;
    int64_t next_ = 0;
    int64_t total_ = -1;
};

}  // namespace newscaster::pipeline
