// The mouth's opening from pictures alone: how far the lower lip and the chin move down.
#pragma once

#include <optional>
#include <vector>

#include "core/stage_types.h"
#include "media/video_source.h"

namespace newscaster::sync {

// Follows the middle columns of a mouth box: luma of its lower part, row by row, is looked for in
// the first picture higher up and lower down, and so is that of its upper part (between nose and
// lip), which moves with the head alone; the opening is the difference. Use from one thread at a
// time.
class LipTracker {
  public:
    // mouth: from below the nose to the chin, inside the pictures, at least kLeastHeight high and
    // wide. Throws Error(bad_input).
    explicit LipTracker(const Box& mouth);

    static constexpr int kLeastHeight = 24;

    // In shares of the box's height, relative to the first picture; positive is open. Throws
    // Error(bad_input) for pictures that do not hold the box.
    [[nodiscard]] double opening(const media::VideoPicture& picture);

  private:
    Box box_;
    std::vector<double> first_;  // profile of the first picture
};

// Rows by which `profile` is lower than `reference` (negative: higher), at most `reach`, where they
// differ least in the mean square; a parabola gives the fraction. Equal sizes beyond 2 * reach.
[[nodiscard]] double displacement(const std::vector<double>& profile,
                                  const std::vector<double>& reference, int reach);

}  // namespace newscaster::sync
