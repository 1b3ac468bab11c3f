// Condition rows of the motion generator: audio features beside the controls.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "pack/manifest.h"

namespace newscaster::motion {

// Fills the manifest's condition spans: audio = the feature row, emotion = one-hot, blink value and
// blink mask = 0 (the generator blinks by itself; see docs/motion.md). Stateless after
// construction.
class ConditionRows {
  public:
    // emotion: a label of the pack, or empty for the pack's default. Throws Error(bad_input) for a
    // label the pack does not have, Error(bad_pack) when audio and feature sizes differ.
    ConditionRows(const pack::Manifest& manifest, const std::string& emotion);

    // Writes one row [condition_dims] for one feature row [feature_dims].
    void fill(std::span<const float> features, std::span<float> row) const;

  private:
    std::vector<float> fixed_;  // the row without its audio part
    size_t audio_offset_ = 0;
};

}  // namespace newscaster::motion
