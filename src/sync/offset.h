// By how much the picture comes late.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "sync/mouth_track.h"

namespace newscaster::sync {

struct Offset {
    // Correlation of the mouth, shifted, with the speech: from -search to +search frames. nullopt
    // where one of them does not move.
    std::vector<std::optional<double>> correlations;
    // Frames by which the mouth comes after the sound (negative: before), by a parabola through the
    // peak; nullopt when there is no clear peak.
    std::optional<double> frames;
    double peak = 0.0;   // the largest correlation
    double rival = 0.0;  // the largest one more than kPeakReach frames away from it
};

inline constexpr double kLeastPeak = 0.3;    // of a clear peak
inline constexpr double kLeastMargin = 0.1;  // over its rival
inline constexpr int kPeakReach = 3;         // frames that belong to a peak

// Both tracks at one rate; the longer one is cut. What is slower than about a second is taken out
// of both first. search >= 0. Throws Error(bad_input) when fewer than least_frames(search) remain.
[[nodiscard]] Offset find_offset(std::span<const double> speech, std::span<const double> mouth,
                                 int search);

// A second beyond what the search moves over both ends.
[[nodiscard]] size_t least_frames(int search);

// The opening at another frame rate: taken at the middle of each frame by linear interpolation; the
// ends are held.
[[nodiscard]] std::vector<double> resampled(const MouthTrack& track, double fps);

}  // namespace newscaster::sync
