#include "motion/box_smoother.h"

#include <algorithm>
#include <utility>

namespace newscaster::motion {

BoxSmoother::BoxSmoother(std::vector<pack::SmoothingSpec> filters, int64_t dims)
    : filters_(std::move(filters)), dims_(static_cast<size_t>(dims)) {
    for (const auto& filter : filters_) {
        reach_ = std::max(reach_, static_cast<size_t>(filter.frames / 2));
    }
}

std::vector<float> BoxSmoother::smoothed(size_t position) const {
    std::vector<float> row = rows_[position];
    for (const auto& filter : filters_) {
        const auto half = static_cast<size_t>(filter.frames / 2);
        const size_t first = position - std::min(position, half);
        const size_t last = std::min(position + half, rows_.size() - 1);
        const auto end = static_cast<size_t>(filter.offset + filter.size);
        for (auto dim = static_cast<size_t>(filter.offset); dim < end; ++dim) {
            double sum = 0.0;
            for (size_t i = first; i <= last; ++i) sum += rows_[i][dim];
            row[dim] = static_cast<float>(sum / static_cast<double>(last - first + 1));
        }
    }
    return row;
}

std::vector<float> BoxSmoother::push(std::span<const float> rows) {
    std::vector<float> result;
    for (size_t begin = 0; begin < rows.size(); begin += dims_) {
        const auto row = rows.subspan(begin, dims_);
        rows_.emplace_back(row.begin(), row.end());
        if (rows_.size() <= done_ + reach_) continue;
        const auto ready = smoothed(done_);
        result.insert(result.end(), ready.begin(), ready.end());
        if (done_ == reach_) {
            rows_.pop_front();
        } else {
            ++done_;
        }
    }
    return result;
}

std::vector<float> BoxSmoother::finish() {
    std::vector<float> result;
    for (; done_ < rows_.size(); ++done_) {
        const auto ready = smoothed(done_);
        result.insert(result.end(), ready.begin(), ready.end());
    }
    return result;
}

}  // namespace newscaster::motion
