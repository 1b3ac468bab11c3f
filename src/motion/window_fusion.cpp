#include "motion/window_fusion.h"

#include <algorithm>
#include <utility>

namespace newscaster::motion {

WindowFusion::WindowFusion(int64_t window, int64_t overlap, std::vector<float> neutral)
    : dims_(neutral.size()),
      overlap_(static_cast<size_t>(overlap)),
      hop_(static_cast<size_t>(window - overlap)),
      previous_frame_(std::move(neutral)) {}

std::span<const float> WindowFusion::add(std::span<const float> rows) {
    const auto old = tail();
    std::vector<float> fused(rows.begin(), rows.end());
    for (size_t i = 0; i < old.size(); ++i) {
        const size_t row = i / dims_;
        const double weight = static_cast<double>(row) / static_cast<double>(overlap_);
        fused[i] = static_cast<float>(old[i] * (1.0 - weight) + rows[i] * weight);
    }
    fused_ = std::move(fused);
    const auto final_rows = std::span<const float>(fused_).first(hop_ * dims_);
    std::copy(final_rows.end() - static_cast<std::ptrdiff_t>(dims_), final_rows.end(),
              previous_frame_.begin());
    return final_rows;
}

std::span<const float> WindowFusion::tail() const {
    if (fused_.empty()) return {};
    return std::span<const float>(fused_).subspan(hop_ * dims_);
}

}  // namespace newscaster::motion
