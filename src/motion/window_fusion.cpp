#include "motion/window_fusion.h"

#include <algorithm>
#include <utility>

namespace newscaster::motion {

WindowFusion::WindowFusion(FusionPlan plan, std::vector<float> initial)
    : plan_(std::move(plan)),
      initial_(std::move(initial)),
      dims_(initial_.size()),
      hop_(static_cast<size_t>(plan_.window - plan_.overlap)),
      faded_(static_cast<size_t>(plan_.overlap)),
      previous_frame_(initial_) {
    if (plan_.online) faded_ = std::min(faded_, hop_);
    for (const auto& filter : plan_.filters) {
        reach_ = std::max(reach_, static_cast<size_t>(filter.frames / 2));
    }
}

// Box filters over rows [begin, end) of the track, from unsmoothed neighbours.
void WindowFusion::smooth(size_t begin, size_t end) {
    if (plan_.filters.empty()) return;
    const std::vector<float> raw = track_;
    for (const auto& filter : plan_.filters) {
        const auto half = static_cast<size_t>(filter.frames / 2);
        const auto last_dim = static_cast<size_t>(filter.offset + filter.size);
        for (size_t row = begin; row < end; ++row) {
            const size_t first = row - std::min(row, half);
            const size_t last = std::min(row + half, rows_ - 1);
            for (auto dim = static_cast<size_t>(filter.offset); dim < last_dim; ++dim) {
                double sum = 0.0;
                for (size_t i = first; i <= last; ++i) sum += raw[i * dims_ + dim];
                track_[row * dims_ + dim] =
                    static_cast<float>(sum / static_cast<double>(last - first + 1));
            }
        }
    }
}

// Drops rows that no later window, filter or previous frame reads.
void WindowFusion::forget() {
    const size_t kept = std::max(static_cast<size_t>(plan_.overlap) + 1, faded_ + reach_);
    if (rows_ <= kept) return;
    track_.erase(track_.begin(),
                 track_.begin() + static_cast<std::ptrdiff_t>((rows_ - kept) * dims_));
    rows_ = kept;
}

void WindowFusion::update_previous() {
    const auto row = std::span<const float>(track_).subspan(
        (rows_ - static_cast<size_t>(plan_.overlap) - 1) * dims_, dims_);
    const auto& reset = plan_.reset;
    if (reset.interval_windows == 0 || windows_ % reset.interval_windows != 0) {
        std::copy(row.begin(), row.end(), previous_frame_.begin());
        return;
    }
    previous_frame_ = initial_;
    std::copy(row.begin() + reset.kept_begin, row.begin() + reset.kept_end,
              previous_frame_.begin() + reset.kept_begin);
}

std::span<const float> WindowFusion::add(std::span<const float> rows) {
    size_t begin = 0;  // of the rows that become final
    if (windows_ == 0) {
        track_.assign(rows.begin(), rows.end());
        rows_ = rows.size() / dims_;
        smooth(0, rows_);
        first_frame_.assign(track_.begin(), track_.begin() + static_cast<std::ptrdiff_t>(dims_));
    } else {
        forget();
        begin = rows_ - faded_;
        const size_t overlap = rows.size() / dims_ - hop_;
        const auto fresh = rows.subspan((overlap - faded_) * dims_);
        float* old = track_.data() + begin * dims_;
        for (size_t i = 0; i < faded_ * dims_; ++i) {
            const size_t row = i / dims_;
            const double weight = static_cast<double>(row) / static_cast<double>(faded_);
            old[i] = static_cast<float>(old[i] * (1.0 - weight) + fresh[i] * weight);
        }
        track_.insert(track_.end(), fresh.begin() + static_cast<std::ptrdiff_t>(faded_ * dims_),
                      fresh.end());
        const size_t joint = rows_;
        rows_ += hop_;
        smooth(begin, joint + 1);
    }
    ++windows_;
    update_previous();
    return std::span<const float>(track_).subspan(begin * dims_, (rows_ - faded_ - begin) * dims_);
}

std::span<const float> WindowFusion::tail() const {
    if (windows_ == 0) return {};
    return std::span<const float>(track_).last(faded_ * dims_);
}

}  // namespace newscaster::motion
