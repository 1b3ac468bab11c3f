// Streaming box filters over stretches of the motion vector.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "pack/manifest.h"

namespace newscaster::motion {

// Each filter replaces a value by the mean of the rows at most (frames - 1) / 2 away; at the two
// ends of the track the mean is over the rows that exist. Filters read unsmoothed rows. The delay
// is that of the widest filter; memory is bounded by it.
class BoxSmoother {
  public:
    BoxSmoother(std::vector<pack::SmoothingSpec> filters, int64_t dims);

    // Appends rows [n, dims] and returns those that became final, flat.
    std::vector<float> push(std::span<const float> rows);
    // No more rows: returns the rest.
    std::vector<float> finish();

  private:
    [[nodiscard]] std::vector<float> smoothed(size_t position) const;

    std::vector<pack::SmoothingSpec> filters_;
    size_t dims_;
    size_t reach_ = 0;  // rows needed on each side
    std::deque<std::vector<float>>
        rows_;         // the last `reach_` rows given out, then the waiting ones
    size_t done_ = 0;  // rows_ [0, done_) are given out already
};

}  // namespace newscaster::motion
