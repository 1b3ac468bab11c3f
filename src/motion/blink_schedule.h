// When blinks start: at given frames, after given gaps, or after random ones.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "newscaster/controls.h"
#include "pack/manifest.h"

namespace newscaster::motion {

// Closing of the lids over one blink at 25 frames per second, for packs that take a blink as a
// number per frame: down in two frames, shut for two, up in three.
inline constexpr std::array<float, 7> kBlinkCurve{0.35F, 0.8F, 1.0F, 1.0F, 0.75F, 0.4F, 0.15F};

// Blinks of `length` frames. Random gaps are drawn from Philox (docs/noise.md), so they depend on
// the seed alone. Ask for frames in rising order. Use from one thread at a time.
class BlinkSchedule {
  public:
    BlinkSchedule() = default;  // never blinks
    // Gaps and starts of the controls, else the gaps of the pack.
    BlinkSchedule(const Controls& controls, const pack::BlinkSpec& spec, int64_t length,
                  uint64_t seed);

    // Place within a blink, 0 .. length - 1, or -1 when the eyes are open. A blink that would not
    // be over by `end` (the number of frames of the track, when known) does not start.
    [[nodiscard]] int64_t place(int64_t frame, int64_t end = INT64_MAX);

  private:
    [[nodiscard]] int64_t next_gap();
    void plan_next();

    std::vector<int64_t> gaps_;    // used over and over
    std::vector<int64_t> starts_;  // instead of gaps
    int64_t min_gap_ = 0;          // random gaps, when max_gap_ > 0
    int64_t max_gap_ = 0;
    int64_t length_ = 0;
    uint64_t seed_ = 0;
    size_t planned_ = 0;
    int64_t start_ = INT64_MAX;  // of the blink that is running or comes next
};

}  // namespace newscaster::motion
