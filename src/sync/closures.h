// Whether the lips meet where the sound says that they do: p, b, m.
#pragma once

#include <cstdint>
#include <span>

#include "sync/speech_track.h"

namespace newscaster::sync {

struct Closures {
    int64_t spoken = 0;   // runs of frames that are p, b or m by more than half
    int64_t met = 0;      // of these, with a closed frame in them or one frame beside
    int64_t seen = 0;     // runs of closed frames inside speech
    int64_t right = 0;    // of these, with p, b or m in them or one frame beside
    double chance = 0.0;  // share of spoken frames with a closed frame in reach: recall by accident
};

// opening: of the mouth, at the speech's rate; the longer track is cut. A frame is closed when the
// lips are apart by at most 0.15 of what is wide: the 95th percentile over spoken frames. Openings
// count from 0 or, where zero_is_closed does not hold, from the 5th percentile of the second either
// side. A run is inside speech when neither it nor a frame beside it is silent by more than half.
[[nodiscard]] Closures count_closures(const SpeechTrack& speech, std::span<const double> opening,
                                      bool zero_is_closed);

}  // namespace newscaster::sync
