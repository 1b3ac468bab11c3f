// Where the face of a clip is in every source frame. Private to this room.
#pragma once

#include <optional>
#include <vector>

#include "core/log.h"
#include "device/device.h"
#include "newscaster/registration.h"
#include "pack/manifest.h"
#include "pipeline/avatar_parts.h"
#include "pipeline/source_report.h"

namespace newscaster::pipeline {

struct ClipTrack {
    std::vector<Framing> framings;  // per source frame; between its neighbours' where no face is
    std::vector<bool> has_face;     // per source frame
    // Per source frame: 0 without a face, so that it is shown unchanged; rises to 1 within a
    // quarter of a second on either side.
    std::vector<double> opacity;
};

// One pass over the clip. Throws Error(bad_input) when no frame shows a face, or the clip cannot be
// read; Error(bad_pack) without detectors.
[[nodiscard]] ClipTrack track_clip(const AvatarSource& source, const pack::Manifest& manifest,
                                   device::Device& device, const Log& log, SourceReport& report);

// The parts of it that need no clip. A face missed in so few frames is there all the same.
inline constexpr size_t kMissedFrames = 2;

// found: per source frame, nullopt without a face; at least one has one. ramp: frames over which
// the opacity rises.
[[nodiscard]] ClipTrack fill_gaps(const std::vector<std::optional<Framing>>& found, size_t ramp);

// Each box becomes the mean over `frames` (odd) boxes around it; fewer near the ends.
void smooth_boxes(std::vector<Framing>& framings, int frames);

}  // namespace newscaster::pipeline
