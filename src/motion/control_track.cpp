#include "motion/control_track.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "motion/gaze.h"
#include "newscaster/error.h"

namespace newscaster::motion {

namespace {

[[noreturn]] void fail(const std::string& what) {
    throw Error(ErrorCode::bad_input, "controls: " + what);
}

void check_range(const char* name, double value, double low, double high) {
    if (!(value >= low && value <= high)) {
        fail(fmt::format("{}: found {}, wanted {} to {}", name, value, low, high));
    }
}

void check_spans(const char* name, const std::string& found, const pack::MotionSpec& spec) {
    std::vector<std::string> names;
    for (const auto& span : spec.layout) names.push_back(span.name);
    if (std::find(names.begin(), names.end(), found) == names.end()) {
        fail(
            fmt::format("{}: found \"{}\", wanted one of {}", name, found, fmt::join(names, ", ")));
    }
}

void check_emotion(const std::map<std::string, double>& emotion, const pack::Manifest& manifest) {
    if (emotion.empty()) return;
    const auto* span = manifest.motion.find(pack::ConditionKind::emotion);
    double total = 0.0;
    for (const auto& [label, weight] : emotion) {
        if (span == nullptr) {
            throw Error(ErrorCode::bad_input,
                        fmt::format("emotion: found \"{}\", but pack {} has no emotions", label,
                                    manifest.name));
        }
        if (std::find(span->labels.begin(), span->labels.end(), label) == span->labels.end()) {
            throw Error(ErrorCode::bad_input, fmt::format("emotion: found \"{}\", wanted one of {}",
                                                          label, fmt::join(span->labels, ", ")));
        }
        check_range("emotion", weight, 0.0, 1.0);
        total += weight;
    }
    if (!(total > 0.0)) fail("emotion: found weights of 0 only, wanted one above 0");
}

void check_expression(const std::map<std::string, std::vector<double>>& offsets,
                      const pack::Manifest& manifest) {
    constexpr double kMaxOffset = 10.0;
    const auto* shapes = manifest.motion.find(pack::SpanKind::blendshapes);
    const bool has_points = manifest.motion.find(pack::SpanKind::expression) != nullptr;
    for (const auto& [name, values] : offsets) {
        size_t wanted = 0;
        if (shapes != nullptr && std::find(shapes->channels.begin(), shapes->channels.end(),
                                           name) != shapes->channels.end()) {
            wanted = 1;
        } else if (int64_t index = -1;
                   has_points &&
                   std::from_chars(name.data(), name.data() + name.size(), index).ptr ==
                       name.data() + name.size() &&
                   index >= 0 && index < manifest.keypoints.count) {
            wanted = 3;
        } else {
            fail(fmt::format("expression_offset: found \"{}\", wanted {} of pack {}", name,
                             has_points ? "a keypoint index" : "a blendshape", manifest.name));
        }
        if (values.size() != wanted) {
            fail(fmt::format("expression_offset: {}: found {} numbers, wanted {}", name,
                             values.size(), wanted));
        }
        for (const double value : values) {
            check_range("expression_offset", value, -kMaxOffset, kMaxOffset);
        }
    }
}

void check_condition(const char* name, const std::vector<double>& values, pack::ConditionKind kind,
                     const pack::Manifest& manifest) {
    if (values.empty()) return;
    const auto* span = manifest.motion.find(kind);
    const auto wanted = span == nullptr ? size_t{0} : static_cast<size_t>(span->size);
    if (values.size() != wanted) {
        fail(fmt::format("{}: found {} numbers, wanted {} for pack {}", name, values.size(), wanted,
                         manifest.name));
    }
    for (const double value : values) check_range(name, value, -1e3, 1e3);
}

void check_pose(const char* name, const std::optional<PoseAngles>& pose, double limit) {
    if (!pose) return;
    for (const double value : {pose->pitch, pose->yaw, pose->roll}) {
        check_range(name, value, -limit, limit);
    }
}

void check_frame(const FrameControls& frame, const pack::Manifest& manifest) {
    constexpr double kMaxAngleDeg = 180.0;
    constexpr double kMaxFactor = 100.0;
    check_emotion(frame.emotion, manifest);
    check_pose("pose_offset_deg", frame.pose_offset_deg, kMaxAngleDeg);
    check_pose("pose_factor", frame.pose_factor, kMaxFactor);
    check_expression(frame.expression_offset, manifest);
    if (frame.voice_activity) check_range("voice_activity", *frame.voice_activity, 0.0, 1.0);
    if (frame.fade) check_range("fade", *frame.fade, 0.0, 1.0);
    for (const auto& name : frame.fade_spans) check_spans("fade_spans", name, manifest.motion);
    if (frame.gaze_deg) {
        check_range("gaze_deg", frame.gaze_deg->yaw, -kMaxAngleDeg, kMaxAngleDeg);
        check_range("gaze_deg", frame.gaze_deg->pitch, -kMaxAngleDeg, kMaxAngleDeg);
        if (!can_turn_eyes(manifest.motion)) {
            fail(fmt::format("gaze_deg: pack {} has no eyes to turn", manifest.name));
        }
    }
    if (frame.blink) {
        check_range("blink", *frame.blink, 0.0, 1.0);
        if (!has_blink_conditions(manifest.motion)) {
            fail(fmt::format("blink: pack {} follows blink_gap_frames and blink_starts only",
                             manifest.name));
        }
    }
    check_condition("eye_open", frame.eye_open, pack::ConditionKind::eye_open, manifest);
    check_condition("eye_ball", frame.eye_ball, pack::ConditionKind::eye_ball, manifest);
}

void check_session(const Controls& controls, const pack::Manifest& manifest) {
    for (const auto& [name, weight] : controls.driven_spans) {
        check_spans("driven_spans", name, manifest.motion);
        check_range("driven_spans", weight, -100.0, 100.0);
    }
    const bool blinks = !controls.blink_gap_frames.empty() || !controls.blink_starts.empty();
    if (blinks && !has_blink_conditions(manifest.motion) && !has_blink_offsets(manifest.motion)) {
        fail(fmt::format("blinks: pack {} has no way to control them", manifest.name));
    }
    if (controls.stitching.value_or(false) && !manifest.graphs.contains(pack::role::kStitch)) {
        fail(fmt::format("stitching: pack {} has no stitch graph", manifest.name));
    }
    if (controls.smoothing_frames &&
        (*controls.smoothing_frames < 1 || *controls.smoothing_frames > 99 ||
         *controls.smoothing_frames % 2 == 0)) {
        fail(fmt::format("smoothing_frames: found {}, wanted an odd number from 1 to 99",
                         *controls.smoothing_frames));
    }
    if (controls.fusion && *controls.fusion != "offline" && *controls.fusion != "online") {
        fail(fmt::format("fusion: found \"{}\", wanted \"offline\" or \"online\"",
                         *controls.fusion));
    }
    const auto& motion = manifest.motion;
    if (controls.fusion == "offline" && 2 * motion.overlap_frames > motion.window_frames) {
        fail(
            fmt::format("fusion: found offline, but pack {} overlaps its windows by {} of {} "
                        "frames, which online fusion alone can join",
                        manifest.name, motion.overlap_frames, motion.window_frames));
    }
    if (controls.eta) check_range("eta", *controls.eta, 0.0, 1.0);
    for (const int64_t frames : {controls.fade_in_frames, controls.fade_out_frames,
                                 controls.reset_interval_windows.value_or(0)}) {
        check_range("number of frames or windows", static_cast<double>(frames), 0.0, 1e6);
    }
}

template <typename T>
void take(T& target, const T& over) {
    if (over != T()) target = over;
}

void take(std::optional<PoseAngles>& target, const std::optional<PoseAngles>& over) {
    if (over) target = over;
}

void take(std::optional<GazeAngles>& target, const std::optional<GazeAngles>& over) {
    if (over) target = over;
}

void merge(FrameControls& target, const FrameControls& over) {
    take(target.emotion, over.emotion);
    take(target.pose_offset_deg, over.pose_offset_deg);
    take(target.pose_factor, over.pose_factor);
    take(target.expression_offset, over.expression_offset);
    take(target.voice_activity, over.voice_activity);
    take(target.fade, over.fade);
    take(target.fade_spans, over.fade_spans);
    take(target.gaze_deg, over.gaze_deg);
    take(target.blink, over.blink);
    take(target.eye_open, over.eye_open);
    take(target.eye_ball, over.eye_ball);
}

}  // namespace

bool has_blink_conditions(const pack::MotionSpec& spec) {
    return spec.find(pack::ConditionKind::blink_value) != nullptr &&
           spec.find(pack::ConditionKind::blink_mask) != nullptr;
}

bool has_blink_offsets(const pack::MotionSpec& spec) {
    return spec.composition && !spec.composition->blink.offsets.empty();
}

ControlTrack::ControlTrack(const pack::Manifest& manifest, Controls controls,
                           const std::string& emotion)
    : controls_(std::move(controls)) {
    if (controls_.overall.emotion.empty() && !emotion.empty()) {
        controls_.overall.emotion = {{emotion, 1.0}};
    }
    check_frame(controls_.overall, manifest);
    for (const auto& range : controls_.frames) {
        if (range.first < 0 || range.last < range.first) {
            fail(fmt::format("frames: found {} to {}, wanted 0 <= first <= last", range.first,
                             range.last));
        }
        check_frame(range.controls, manifest);
    }
    check_session(controls_, manifest);
}

FrameControls ControlTrack::at(int64_t frame) const {
    const int64_t index = std::max<int64_t>(frame, 0);
    FrameControls result = controls_.overall;
    for (const auto& range : controls_.frames) {
        if (index >= range.first && index <= range.last) merge(result, range.controls);
    }
    return result;
}

pack::MotionSpec with_controls(pack::MotionSpec spec, const Controls& controls) {
    if (controls.fusion) {
        spec.fusion = *controls.fusion == "online" ? pack::Fusion::online : pack::Fusion::offline;
    }
    if (controls.reset_interval_windows) {
        spec.reset.interval_windows = *controls.reset_interval_windows;
    }
    if (controls.smoothing_frames) {
        spec.smoothing.clear();
        for (const auto& span : spec.layout) {
            if (span.kind == pack::SpanKind::blendshapes ||
                span.kind == pack::SpanKind::expression || *controls.smoothing_frames == 1) {
                continue;
            }
            spec.smoothing.push_back(
                {.offset = span.offset, .size = span.size, .frames = *controls.smoothing_frames});
        }
    }
    return spec;
}

}  // namespace newscaster::motion
