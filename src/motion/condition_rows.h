// Condition rows of the motion generator: audio features beside the controls.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "motion/blink_schedule.h"
#include "motion/control_track.h"
#include "pack/manifest.h"

namespace newscaster::motion {

// What the avatar tells the generator; only what the pack's conditions name is read.
struct AvatarConditions {
    std::vector<std::vector<float>> eye_open;     // per source frame
    std::vector<std::vector<float>> eye_ball;     // per source frame
    std::vector<float> source_keypoints;          // canonical, of the first source frame
    std::function<int64_t(int64_t)> source_of{};  // video frame (>= 0) -> source frame
};

// Fills the manifest's condition spans: audio = the feature row; emotion = one-hot, weights or
// their softmax; blink value and mask = the controls' blink, else 0 (the generator blinks by
// itself; see docs/motion.md); eyes and keypoints = the avatar's. Ask for frames in rising order.
class ConditionRows {
  public:
    // Throws Error(bad_pack) when audio and feature sizes differ or the avatar lacks a condition.
    ConditionRows(const pack::Manifest& manifest, ControlTrack controls, AvatarConditions avatar,
                  uint64_t seed);

    // Writes the row [condition_dims] of video frame `frame` (below 0: lead-in, as frame 0) for
    // one feature row [feature_dims].
    void fill(int64_t frame, std::span<const float> features, std::span<float> row);

  private:
    void put_emotion(const FrameControls& frame, std::span<float> target) const;
    void put_blink(int64_t frame, const FrameControls& controls, std::span<float> row);
    void put_eyes(int64_t frame, const pack::ConditionSpan& span, const std::vector<double>& asked,
                  const std::vector<std::vector<float>>& rows, std::span<float> target) const;

    pack::MotionSpec spec_;
    ControlTrack controls_;
    AvatarConditions avatar_;
    bool schedules_blinks_ = false;
    BlinkSchedule blinks_;
};

}  // namespace newscaster::motion
