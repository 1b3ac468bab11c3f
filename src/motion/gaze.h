// Turning the eyes: by the pack's table of keypoint offsets, or by ARKit's eyeLook blendshapes.
#pragma once

#include <span>

#include "pack/manifest.h"

namespace newscaster::motion {

// Eye rotation that an eyeLook coefficient of 1 stands for; docs/motion.md, "Motion curves".
inline constexpr double kEyeLookFullDeg = 30.0;

// Whether the pack has a gaze table or all of the eyeLook blendshapes.
[[nodiscard]] bool can_turn_eyes(const pack::MotionSpec& spec);

// Adds the pack's table (composition.gaze) to the expression of `row`: yaw and pitch are the
// degrees that the head has turned and the eyes must make good.
void correct_gaze(const pack::MotionSpec& spec, double yaw_deg, double pitch_deg,
                  std::span<float> row);

// Turns both eyes of a row with eyeLook blendshapes; + yaw to the picture's left, + pitch down.
// Coefficients stay within [0, 1].
void turn_eyes(const pack::MotionSpec& spec, double yaw_deg, double pitch_deg,
               std::span<float> row);

}  // namespace newscaster::motion
