#include "sync/lip_tracker.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "newscaster/error.h"

namespace newscaster::sync {

namespace {

// Shares of the box: columns that count, where its upper part ends and its lower one starts, and
// how far each may move.
constexpr double kLeft = 0.4;
constexpr double kRight = 0.6;
constexpr double kUpperEnd = 1.0 / 3.0;
constexpr double kLowerStart = 0.625;
constexpr double kUpperReach = 0.08;
constexpr double kLowerReach = 0.12;

std::vector<double> profile_of(const media::VideoPicture& picture, const Box& box) {
    const int left = box.x0 + static_cast<int>(kLeft * box.width());
    const int right = box.x0 + static_cast<int>(kRight * box.width());
    std::vector<double> rows;
    rows.reserve(static_cast<size_t>(box.height()));
    for (int y = box.y0; y < box.y1; ++y) {
        const size_t start = static_cast<size_t>(y) * static_cast<size_t>(picture.width);
        double sum = 0.0;
        for (int x = left; x < right; ++x) sum += picture.y[start + static_cast<size_t>(x)];
        rows.push_back(sum / (right - left));
    }
    return rows;
}

std::vector<double> part(const std::vector<double>& profile, double from, double to) {
    const auto rows = static_cast<double>(profile.size());
    const auto begin = profile.begin();
    return {begin + static_cast<std::ptrdiff_t>(from * rows),
            begin + static_cast<std::ptrdiff_t>(to * rows)};
}

}  // namespace

double displacement(const std::vector<double>& profile, const std::vector<double>& reference,
                    int reach) {
    const int rows = static_cast<int>(reference.size());
    std::vector<double> costs;
    for (int shift = -reach; shift <= reach; ++shift) {
        const int first = std::max(0, -shift);
        const int end = std::min(rows, rows - shift);
        double sum = 0.0;
        for (int row = first; row < end; ++row) {
            const double off =
                profile[static_cast<size_t>(row + shift)] - reference[static_cast<size_t>(row)];
            sum += off * off;
        }
        costs.push_back(sum / (end - first));
    }
    const auto best = static_cast<size_t>(std::ranges::min_element(costs) - costs.begin());
    double fraction = 0.0;
    if (best > 0 && best + 1 < costs.size()) {
        const double bend = costs[best - 1] - 2.0 * costs[best] + costs[best + 1];
        if (bend > 0.0) fraction = 0.5 * (costs[best - 1] - costs[best + 1]) / bend;
    }
    return static_cast<double>(best) - reach + fraction;
}

LipTracker::LipTracker(const Box& mouth) : box_(mouth) {
    if (mouth.x0 >= 0 && mouth.y0 >= 0 && mouth.width() >= kLeastHeight &&
        mouth.height() >= kLeastHeight) {
        return;
    }
    throw Error(ErrorCode::bad_input,
                fmt::format("mouth box: found {}x{} pixels, wanted at least {} each way",
                            mouth.width(), mouth.height(), kLeastHeight));
}

double LipTracker::opening(const media::VideoPicture& picture) {
    if (box_.x1 > picture.width || box_.y1 > picture.height) {
        throw Error(ErrorCode::bad_input,
                    fmt::format("mouth box: found {},{} to {},{}, wanted it inside the video's "
                                "{}x{}",
                                box_.x0, box_.y0, box_.x1, box_.y1, picture.width, picture.height));
    }
    const auto profile = profile_of(picture, box_);
    if (first_.empty()) first_ = profile;
    const double rows = box_.height();
    const auto moved = [&](double from, double to, double reach) {
        return displacement(part(profile, from, to), part(first_, from, to),
                            std::max(1, static_cast<int>(reach * rows)));
    };
    return (moved(kLowerStart, 1.0, kLowerReach) - moved(0.0, kUpperEnd, kUpperReach)) / rows;
}

}  // namespace newscaster::sync
