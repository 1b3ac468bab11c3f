// Bounded queue between two stage threads: back-pressure by blocking, end of stream by close(),
// cancellation by stop_token. Safe for any number of producers and consumers.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <stop_token>
#include <utility>

namespace newscaster {

template <typename T>
class BoundedQueue {
  public:
    // capacity >= 1
    explicit BoundedQueue(size_t capacity) : capacity_(capacity) {}
    BoundedQueue(const BoundedQueue&) = delete;
    BoundedQueue& operator=(const BoundedQueue&) = delete;

    // Blocks while full. False when the queue was closed or a stop was requested; the value is
    // dropped then.
    bool push(T value, const std::stop_token& stop) {
        std::unique_lock lock(mutex_);
        not_full_.wait(lock, stop, [&] { return closed_ || items_.size() < capacity_; });
        if (closed_ || stop.stop_requested()) return false;
        items_.push_back(std::move(value));
        not_empty_.notify_one();
        return true;
    }

    // Blocks while empty. nullopt when closed and drained, or when a stop was requested.
    std::optional<T> pop(const std::stop_token& stop) {
        std::unique_lock lock(mutex_);
        not_empty_.wait(lock, stop, [&] { return closed_ || !items_.empty(); });
        if (stop.stop_requested() || items_.empty()) return std::nullopt;
        T value = std::move(items_.front());
        items_.pop_front();
        not_full_.notify_one();
        return value;
    }

    // Like pop, but gives up at `deadline`: nullopt then too.
    std::optional<T> pop_until(const std::stop_token& stop,
                               std::chrono::steady_clock::time_point deadline) {
        std::unique_lock lock(mutex_);
        not_empty_.wait_until(lock, stop, deadline, [&] { return closed_ || !items_.empty(); });
        if (stop.stop_requested() || items_.empty()) return std::nullopt;
        T value = std::move(items_.front());
        items_.pop_front();
        not_full_.notify_one();
        return value;
    }

    // No more pushes; consumers drain what is left. May be called twice.
    void close() {
        const std::lock_guard lock(mutex_);
        closed_ = true;
        not_empty_.notify_all();
        not_full_.notify_all();
    }

    // Closed and drained.
    [[nodiscard]] bool ended() const {
        const std::lock_guard lock(mutex_);
        return closed_ && items_.empty();
    }

    [[nodiscard]] size_t size() const {
        const std::lock_guard lock(mutex_);
        return items_.size();
    }

  private:
    const size_t capacity_;
    mutable std::mutex mutex_;
    std::condition_variable_any not_full_;
    std::condition_variable_any not_empty_;
    std::deque<T> items_;
    bool closed_ = false;
};

}  // namespace newscaster
