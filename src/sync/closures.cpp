#include "sync/closures.h"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

namespace newscaster::sync {

namespace {

constexpr double kClosedShare = 0.15;
constexpr double kWideQuantile = 0.95;
constexpr double kLowQuantile = 0.05;
constexpr size_t kLowReach = 25;  // frames either side
constexpr double kHalf = 0.5;

using Runs = std::vector<std::pair<size_t, size_t>>;  // first and last frame

// values: not empty.
double quantile(std::vector<double> values, double share) {
    const auto place = values.begin() +
                       static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
    std::ranges::nth_element(values, place);
    return *place;
}

// What "closed" is around each frame, taken off.
std::vector<double> above_low(std::span<const double> opening) {
    std::vector<double> out(opening.begin(), opening.end());
    for (size_t i = 0; i < opening.size(); ++i) {
        const size_t first = i > kLowReach ? i - kLowReach : 0;
        const size_t end = std::min(opening.size(), i + kLowReach + 1);
        const auto around = opening.subspan(first, end - first);
        out[i] -= quantile({around.begin(), around.end()}, kLowQuantile);
    }
    return out;
}

Runs runs_of(const std::vector<bool>& flags) {
    Runs runs;
    for (size_t i = 0; i < flags.size(); ++i) {
        if (!flags[i]) continue;
        if (i > 0 && flags[i - 1]) {
            runs.back().second = i;
        } else {
            runs.emplace_back(i, i);
        }
    }
    return runs;
}

// Whether a frame of the run, or one beside it, is flagged.
bool touches(const std::pair<size_t, size_t>& run, const std::vector<bool>& flags) {
    const size_t first = run.first > 0 ? run.first - 1 : 0;
    const size_t last = std::min(run.second + 1, flags.size() - 1);
    for (size_t i = first; i <= last; ++i) {
        if (flags[i]) return true;
    }
    return false;
}

std::vector<bool> above_half(std::span<const double> shares) {
    std::vector<bool> flags(shares.size());
    std::transform(shares.begin(), shares.end(), flags.begin(),
                   [](double share) { return share > kHalf; });
    return flags;
}

}  // namespace

Closures count_closures(const SpeechTrack& speech, std::span<const double> opening,
                        bool zero_is_closed) {
    const size_t frames = std::min(speech.frames(), opening.size());
    const auto part = opening.first(frames);
    const std::vector<double> apart =
        zero_is_closed ? std::vector<double>(part.begin(), part.end()) : above_low(part);
    const auto silent = above_half(std::span(speech.silence).first(frames));
    const auto bilabial = above_half(std::span(speech.bilabial).first(frames));
    std::vector<double> spoken;
    for (size_t i = 0; i < frames; ++i) {
        if (!silent[i]) spoken.push_back(apart[i]);
    }
    Closures found;
    if (spoken.empty()) return found;
    const double most = kClosedShare * quantile(spoken, kWideQuantile);
    std::vector<bool> closed(frames);
    std::transform(apart.begin(), apart.end(), closed.begin(), [&](double x) { return x <= most; });

    for (const auto& run : runs_of(bilabial)) {
        ++found.spoken;
        found.met += touches(run, closed) ? 1 : 0;
    }
    for (const auto& run : runs_of(closed)) {
        if (touches(run, silent)) continue;
        ++found.seen;
        found.right += touches(run, bilabial) ? 1 : 0;
    }
    int64_t in_reach = 0;
    for (size_t i = 0; i < frames; ++i) in_reach += !silent[i] && touches({i, i}, closed) ? 1 : 0;
    found.chance = static_cast<double>(in_reach) / static_cast<double>(spoken.size());
    return found;
}

}  // namespace newscaster::sync
