// Controls, checked against a pack and looked up frame by frame.
#pragma once

#include <cstdint>

#include "newscaster/controls.h"
#include "pack/manifest.h"

namespace newscaster::motion {

// Immutable after construction; thread-safe.
class ControlTrack {
  public:
    ControlTrack() = default;  // no control at all

    // emotion: label for every frame that the controls say nothing about; empty = the pack's.
    // Throws Error(bad_input) for values out of range, for names the pack does not have and for
    // controls it cannot follow.
    ControlTrack(const pack::Manifest& manifest, Controls controls, const std::string& emotion);

    // The overall controls with those of the frame's ranges over them. Negative frames count as 0.
    [[nodiscard]] FrameControls at(int64_t frame) const;
    [[nodiscard]] const Controls& controls() const { return controls_; }

  private:
    Controls controls_;
};

// How a pack's blinks can be controlled: by conditions of the generator, or by offsets of its own.
[[nodiscard]] bool has_blink_conditions(const pack::MotionSpec& spec);
[[nodiscard]] bool has_blink_offsets(const pack::MotionSpec& spec);

// The motion settings of a session: the pack's, with what the controls replace.
[[nodiscard]] pack::MotionSpec with_controls(pack::MotionSpec spec, const Controls& controls);

}  // namespace newscaster::motion
