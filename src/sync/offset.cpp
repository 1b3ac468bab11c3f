#include "sync/offset.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "newscaster/error.h"

namespace newscaster::sync {

namespace {

constexpr std::ptrdiff_t kTrendReach = 12;  // frames either side of the running mean

// x less its running mean; the ends are held.
std::vector<double> without_trend(std::span<const double> x) {
    const auto count = static_cast<std::ptrdiff_t>(x.size());
    std::vector<double> out(x.size());
    for (std::ptrdiff_t i = 0; i < count; ++i) {
        double sum = 0.0;
        for (std::ptrdiff_t k = i - kTrendReach; k <= i + kTrendReach; ++k) {
            sum += x[static_cast<size_t>(std::clamp<std::ptrdiff_t>(k, 0, count - 1))];
        }
        out[static_cast<size_t>(i)] =
            x[static_cast<size_t>(i)] - sum / static_cast<double>(2 * kTrendReach + 1);
    }
    return out;
}

// Pearson's; nullopt where one side is constant but for rounding.
std::optional<double> correlation(std::span<const double> a, std::span<const double> b) {
    constexpr double kStill = 1e-12;  // variance
    const auto n = static_cast<double>(a.size());
    double mean_a = 0.0;
    double mean_b = 0.0;
    for (size_t i = 0; i < a.size(); ++i) {
        mean_a += a[i] / n;
        mean_b += b[i] / n;
    }
    double aa = 0.0;
    double bb = 0.0;
    double ab = 0.0;
    for (size_t i = 0; i < a.size(); ++i) {
        aa += (a[i] - mean_a) * (a[i] - mean_a);
        bb += (b[i] - mean_b) * (b[i] - mean_b);
        ab += (a[i] - mean_a) * (b[i] - mean_b);
    }
    if (aa <= n * kStill || bb <= n * kStill) return std::nullopt;
    return ab / std::sqrt(aa * bb);
}

double summit(double left, double middle, double right) {
    const double bend = left - 2.0 * middle + right;
    return bend < 0.0 ? 0.5 * (left - right) / bend : 0.0;
}

// Sets frames, peak and rival from the correlations.
void judge(Offset& offset, int search) {
    const auto at = [&](size_t i) { return offset.correlations[i].value_or(-1.0); };
    size_t best = 0;
    for (size_t i = 1; i < offset.correlations.size(); ++i) {
        if (at(i) > at(best)) best = i;
    }
    offset.peak = offset.correlations[best].value_or(0.0);
    for (size_t i = 0; i < offset.correlations.size(); ++i) {
        const size_t apart = i > best ? i - best : best - i;
        if (apart > static_cast<size_t>(kPeakReach)) offset.rival = std::max(offset.rival, at(i));
    }
    const bool inside = best > 0 && best + 1 < offset.correlations.size();
    if (!inside || offset.peak < kLeastPeak || offset.peak - offset.rival < kLeastMargin) return;
    offset.frames =
        static_cast<double>(best) - search + summit(at(best - 1), at(best), at(best + 1));
}

}  // namespace

size_t least_frames(int search) {
    constexpr size_t kSecond = 25;
    return kSecond + 2 * static_cast<size_t>(search);
}

Offset find_offset(std::span<const double> speech, std::span<const double> mouth, int search) {
    const size_t frames = std::min(speech.size(), mouth.size());
    if (frames < least_frames(search)) {
        throw Error(ErrorCode::bad_input,
                    fmt::format("found {} frames with sound and picture, wanted at least {} for a "
                                "search of {} frames",
                                frames, least_frames(search), search));
    }
    const auto asked = without_trend(speech.first(frames));
    const auto seen = without_trend(mouth.first(frames));
    Offset offset;
    for (int shift = -search; shift <= search; ++shift) {
        const size_t common = frames - static_cast<size_t>(std::abs(shift));
        const auto late = static_cast<size_t>(std::max(shift, 0));
        const auto early = static_cast<size_t>(std::max(-shift, 0));
        offset.correlations.push_back(correlation(std::span(asked).subspan(early, common),
                                                  std::span(seen).subspan(late, common)));
    }
    judge(offset, search);
    return offset;
}

std::vector<double> resampled(const MouthTrack& track, double fps) {
    if (track.fps == fps || track.opening.empty()) return track.opening;
    const double seconds = static_cast<double>(track.frames()) / track.fps;
    std::vector<double> out(static_cast<size_t>(std::lround(seconds * fps)));
    const auto last = static_cast<double>(track.frames() - 1);
    for (size_t i = 0; i < out.size(); ++i) {
        const double middle_s = (static_cast<double>(i) + 0.5) / fps;
        const double place = std::clamp(middle_s * track.fps - 0.5, 0.0, last);
        const auto before = static_cast<size_t>(place);
        const size_t after = std::min(before + 1, track.frames() - 1);
        const double share = place - static_cast<double>(before);
        out[i] = (1.0 - share) * track.opening[before] + share * track.opening[after];
    }
    return out;
}

}  // namespace newscaster::sync
