#include "pipeline/stage_meter.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace newscaster::pipeline {

namespace {

constexpr double kSmallestS = 1e-6;
constexpr double kPercentile = 0.95;
constexpr double kMsPerS = 1e3;

double seconds(Clock::duration duration) {
    return std::chrono::duration<double>(duration).count();
}

}  // namespace

StageMeter::StageMeter(std::string name, Clock::time_point origin)
    : name_(std::move(name)), origin_(origin) {}

void StageMeter::record(Clock::time_point start, Clock::time_point end) {
    const double duration_s = seconds(end - start);
    const double position = std::log(std::max(duration_s / kSmallestS, 1.0)) / std::log(kRatio);
    const int bucket = std::min(static_cast<int>(position), kBuckets - 1);

    const std::lock_guard lock(mutex_);
    if (calls_ == 0) {
        first_start_s_ = seconds(start - origin_);
        min_s_ = duration_s;
    }
    ++calls_;
    busy_s_ += duration_s;
    min_s_ = std::min(min_s_, duration_s);
    max_s_ = std::max(max_s_, duration_s);
    last_end_s_ = std::max(last_end_s_, seconds(end - origin_));
    ++histogram_[static_cast<size_t>(bucket)];
}

StageStats StageMeter::stats() const {
    const std::lock_guard lock(mutex_);
    StageStats stats{.name = name_,
                     .calls = calls_,
                     .busy_s = busy_s_,
                     .min_ms = min_s_ * kMsPerS,
                     .mean_ms = 0.0,
                     .p95_ms = 0.0,
                     .max_ms = max_s_ * kMsPerS,
                     .first_start_s = first_start_s_,
                     .last_end_s = last_end_s_};
    if (calls_ == 0) return stats;
    stats.mean_ms = busy_s_ / static_cast<double>(calls_) * kMsPerS;
    const auto wanted = static_cast<int64_t>(std::ceil(kPercentile * static_cast<double>(calls_)));
    int64_t seen = 0;
    for (int bucket = 0; bucket < kBuckets; ++bucket) {
        seen += histogram_[static_cast<size_t>(bucket)];
        if (seen >= wanted) {
            const double middle_s = kSmallestS * std::pow(kRatio, bucket + 0.5);
            stats.p95_ms = std::clamp(middle_s * kMsPerS, stats.min_ms, stats.max_ms);
            break;
        }
    }
    return stats;
}

}  // namespace newscaster::pipeline
