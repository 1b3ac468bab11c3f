// How far the lips are apart, frame by frame.
#pragma once

#include <cstddef>
#include <vector>

namespace newscaster::sync {

struct MouthTrack {
    double fps = 0.0;
    std::vector<double> opening;  // grows as the lips part; any unit
    // 0 means lips together. Otherwise the smallest openings of the seconds around do: pictures
    // show where the lips are, and that drifts with the head.
    bool zero_is_closed = false;

    [[nodiscard]] size_t frames() const { return opening.size(); }
};

}  // namespace newscaster::sync
