// Where the time goes: durations per stage, in constant memory, from any thread.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>

#include "newscaster/engine.h"

namespace newscaster::pipeline {

using Clock = std::chrono::steady_clock;

class StageMeter {
  public:
    StageMeter(std::string name, Clock::time_point origin);

    // Measures from construction to destruction.
    class Scope {
      public:
        explicit Scope(StageMeter& meter) : meter_(meter), start_(Clock::now()) {}
        Scope(const Scope&) = delete;
        Scope& operator=(const Scope&) = delete;
        ~Scope() { meter_.record(start_, Clock::now()); }

      private:
        StageMeter& meter_;
        Clock::time_point start_;
    };

    void record(Clock::time_point start, Clock::time_point end);
    [[nodiscard]] StageStats stats() const;

  private:
    // Bucket i holds durations in [1 us * kRatio^i, 1 us * kRatio^(i+1)); 240 of them reach 500 s.
    static constexpr double kRatio = 1.0874;
    static constexpr int kBuckets = 240;

    const std::string name_;
    const Clock::time_point origin_;
    mutable std::mutex mutex_;
    int64_t calls_ = 0;
    double busy_s_ = 0.0;
    double min_s_ = 0.0;
    double max_s_ = 0.0;
    double first_start_s_ = 0.0;
    double last_end_s_ = 0.0;
    std::array<int64_t, kBuckets> histogram_{};
};

}  // namespace newscaster::pipeline
