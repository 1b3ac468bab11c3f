// What the material of an avatar is like: measures of every frame with a face, and a verdict.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/stage_types.h"
#include "registration/face_landmarks.h"

namespace newscaster::registration {

// One source frame.
struct FrameMeasures {
    double face_px = 0.0;       // face_size_px
    double yaw_deg = 0.0;       // of the face's plane; positive: to the picture's right
    double pitch_deg = 0.0;     // positive: down
    double presence = 0.0;      // 0..1, the landmark network's: low where something covers the face
    double inside = 0.0;        // share of the face's points within the picture
    double mouth_open = 0.0;    // distance of the inner lips over the width of the mouth
    double eyes_open = 0.0;     // eye_opening, mean of both
    double brightness = 0.0;    // mean luma of the face, 0..255
    double dark_share = 0.0;    // of the face's pixels below 16
    double bright_share = 0.0;  // of the face's pixels above 250
    // 2 r - 1, where r is the RMS difference of neighbouring pixels of the crop over that of
    // neighbouring means of 2x2 pixels: 0 where nothing is finer than two pixels, whatever the
    // contrast; 0.3 to 0.5 for sharp faces, and up to 1 or so for noise.
    double sharpness = 0.0;
};

// picture: the whole source frame; crop: the same cut to the pack's size.
[[nodiscard]] FrameMeasures measure_frame(const RgbImage& picture, const RgbImage& crop,
                                          const FaceLandmarks& face);

struct Spread {
    double least = 0.0;
    double mean = 0.0;
    double most = 0.0;
};
[[nodiscard]] Spread spread_of(const std::vector<FrameMeasures>& frames,
                               double FrameMeasures::*measure);

// Of how much use the material is, and why. docs/avatar-format.md lists the limits.
struct Verdict {
    std::string word;                 // "good", "usable" or "poor"
    std::vector<std::string> advice;  // sentences; empty for "good"
};

// What only the whole of a clip tells; a picture has one frame.
struct ClipCounts {
    int64_t frames = 1;
    int64_t without_face = 0;
    int64_t mouth_covered = 0;
};

// frames: some or all that show a face, at least one. One: a picture; several: a clip.
[[nodiscard]] Verdict judge(const std::vector<FrameMeasures>& frames, const ClipCounts& clip = {});

// The crop with the face's points drawn on it. crop_to_picture: the crop's map.
[[nodiscard]] RgbImage with_points(RgbImage crop, const FaceLandmarks& face,
                                   const Affine& crop_to_picture);

}  // namespace newscaster::registration
