// What a caller may ask of the motion of one session, for the whole of it or frame by frame.
// docs/controls.md is the table of all controls; the names here are those of the JSON file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "newscaster/export.h"

namespace newscaster {

// One number per head angle. Axes as in docs/motion.md: +pitch lowers the chin, +yaw turns the
// nose to the picture's left, +roll turns the picture clockwise.
struct PoseAngles {
    double pitch = 0.0;
    double yaw = 0.0;
    double roll = 0.0;
};

// Degrees that both eyes turn, in the head's axes: +pitch down, +yaw to the picture's left.
struct GazeAngles {
    double pitch = 0.0;
    double yaw = 0.0;
};

// Controls of one frame; a member that is not set (or empty) leaves the frame alone.
struct FrameControls {
    std::map<std::string, double> emotion;  // label -> weight
    std::optional<PoseAngles> pose_offset_deg;
    std::optional<PoseAngles> pose_factor;  // angle = (angle + offset) * factor
    // Blendshape name -> {offset}, or keypoint index as text -> {x, y, z}, crop units.
    std::map<std::string, std::vector<double>> expression_offset;
    std::optional<double> voice_activity;  // 0..1: weight of the driven expression
    std::optional<double> fade;            // 0..1: weight of the motion, against fade_to
    std::vector<std::string> fade_spans;   // spans that fades act on
    std::optional<GazeAngles> gaze_deg;
    std::optional<double> blink;   // 0 open .. 1 closed
    std::vector<double> eye_open;  // replace the avatar's own rows of these conditions
    std::vector<double> eye_ball;
};

// Frames [first, last].
struct FrameRange {
    int64_t first = 0;
    int64_t last = std::numeric_limits<int64_t>::max();
    FrameControls controls;
};

enum class FadeTo { source, first_frame };

struct Controls {
    FrameControls overall;
    std::vector<FrameRange> frames;  // override `overall` member by member; the later range wins

    int64_t fade_in_frames = 0;
    int64_t fade_out_frames = 0;
    FadeTo fade_to = FadeTo::source;

    // The rest: not set (or empty) = as the pack says.
    std::optional<bool> relative;                // motion relative to the first driving frame
    std::map<std::string, double> driven_spans;  // span -> weight; others stay the source's
    std::optional<bool> drive_eyes;
    std::optional<bool> gaze_correction;  // eyes stay on the camera while the head turns
    std::optional<bool> stitching;
    // {-1}: none, {0}: random, else gaps used one after the other, over and over.
    std::vector<int64_t> blink_gap_frames;
    std::vector<int64_t> blink_starts;        // frames; instead of gaps
    std::optional<int64_t> smoothing_frames;  // box filter of scale, pose and translation; odd
    std::optional<std::string> fusion;        // "offline" or "online"
    std::optional<int64_t> reset_interval_windows;
    std::optional<double> eta;      // of the sampler, 0..1
    bool first_frame_eyes = false;  // eye conditions of the first source frame throughout
};

// Reads a controls file or its text. Throws Error(bad_input) naming origin, path, the value found
// and the value wanted; what depends on the pack is checked when a session opens.
[[nodiscard]] NEWSCASTER_EXPORT Controls read_controls(const std::filesystem::path& file);
[[nodiscard]] NEWSCASTER_EXPORT Controls parse_controls(std::string_view json_text,
                                                        const std::string& origin);

}  // namespace newscaster
