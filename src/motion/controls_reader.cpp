// controls.json -> Controls; docs/controls.md is the reference for users.
#include <fmt/format.h>

#include <algorithm>

#include "core/file.h"
#include "core/json_reader.h"
#include "newscaster/controls.h"

namespace newscaster {

namespace {

constexpr double kMaxAngleDeg = 180.0;
constexpr double kMaxFactor = 100.0;
constexpr double kMaxOffset = 10.0;
constexpr int64_t kMaxFrames = int64_t{1} << 40U;
constexpr size_t kMaxRanges = 1'000'000;

std::vector<double> numbers(const JsonReader& reader, double low, double high) {
    std::vector<double> values(reader.array_size());
    for (size_t i = 0; i < values.size(); ++i) values[i] = reader.at(i).number(low, high);
    return values;
}

// Each name once; "" never.
std::vector<std::string> names(const JsonReader& reader) {
    std::vector<std::string> texts(reader.array_size());
    for (size_t i = 0; i < texts.size(); ++i) texts[i] = reader.at(i).text();
    if (texts.empty()) reader.fail("one name or more");
    return texts;
}

std::map<std::string, double> weights(const JsonReader& reader, double low, double high) {
    std::map<std::string, double> result;
    if (reader.json().is_array()) {
        for (const auto& name : names(reader)) result[name] = 1.0;
        return result;
    }
    for (const auto& name : reader.keys()) result[name] = reader.at(name).number(low, high);
    if (result.empty()) reader.fail("one name or more");
    return result;
}

std::map<std::string, double> parse_emotion(const JsonReader& reader) {
    if (reader.json().is_string()) return {{reader.text(), 1.0}};
    auto emotion = weights(reader, 0.0, 1.0);
    const bool any = std::any_of(emotion.begin(), emotion.end(),
                                 [](const auto& item) { return item.second > 0.0; });
    if (!any) reader.fail("a weight above 0");
    return emotion;
}

PoseAngles parse_pose(const JsonReader& reader, double otherwise, double limit) {
    reader.expect_keys({"pitch", "yaw", "roll"});
    const auto angle = [&](std::string_view key) {
        return reader.has(key) ? reader.at(key).number(-limit, limit) : otherwise;
    };
    return {.pitch = angle("pitch"), .yaw = angle("yaw"), .roll = angle("roll")};
}

GazeAngles parse_gaze(const JsonReader& reader) {
    reader.expect_keys({"pitch", "yaw"});
    const auto angle = [&](std::string_view key) {
        return reader.has(key) ? reader.at(key).number(-kMaxAngleDeg, kMaxAngleDeg) : 0.0;
    };
    return {.pitch = angle("pitch"), .yaw = angle("yaw")};
}

std::map<std::string, std::vector<double>> parse_expression(const JsonReader& reader) {
    std::map<std::string, std::vector<double>> offsets;
    for (const auto& name : reader.keys()) {
        const JsonReader item = reader.at(name);
        offsets[name] = item.json().is_array() ? numbers(item, -kMaxOffset, kMaxOffset)
                                               : std::vector{item.number(-kMaxOffset, kMaxOffset)};
    }
    return offsets;
}

// Reads the members of FrameControls that `reader` has; other keys are the caller's.
FrameControls parse_frame(const JsonReader& reader) {
    FrameControls frame;
    const auto share = [&](std::string_view key, std::optional<double>& target) {
        if (reader.has(key)) target = reader.at(key).number(0.0, 1.0);
    };
    if (reader.has("emotion")) frame.emotion = parse_emotion(reader.at("emotion"));
    if (reader.has("pose_offset_deg")) {
        frame.pose_offset_deg = parse_pose(reader.at("pose_offset_deg"), 0.0, kMaxAngleDeg);
    }
    if (reader.has("pose_factor")) {
        frame.pose_factor = parse_pose(reader.at("pose_factor"), 1.0, kMaxFactor);
    }
    if (reader.has("expression_offset")) {
        frame.expression_offset = parse_expression(reader.at("expression_offset"));
    }
    share("voice_activity", frame.voice_activity);
    share("fade", frame.fade);
    share("blink", frame.blink);
    if (reader.has("fade_spans")) frame.fade_spans = names(reader.at("fade_spans"));
    if (reader.has("gaze_deg")) frame.gaze_deg = parse_gaze(reader.at("gaze_deg"));
    if (reader.has("eye_open")) frame.eye_open = numbers(reader.at("eye_open"), -1e3, 1e3);
    if (reader.has("eye_ball")) frame.eye_ball = numbers(reader.at("eye_ball"), -1e3, 1e3);
    return frame;
}

std::vector<FrameRange> parse_ranges(const JsonReader& reader) {
    const size_t count = reader.array_size();
    if (count > kMaxRanges) reader.fail(fmt::format("at most {} ranges", kMaxRanges));
    std::vector<FrameRange> ranges(count);
    for (size_t i = 0; i < count; ++i) {
        const JsonReader item = reader.at(i);
        item.expect_keys({"first", "last", "emotion", "pose_offset_deg", "pose_factor",
                          "expression_offset", "voice_activity", "fade", "fade_spans", "gaze_deg",
                          "blink", "eye_open", "eye_ball"});
        ranges[i].first = item.at("first").integer(0, kMaxFrames);
        if (item.has("last")) ranges[i].last = item.at("last").integer(0, kMaxFrames);
        if (ranges[i].last < ranges[i].first) item.at("last").fail("a frame not before `first`");
        ranges[i].controls = parse_frame(item);
    }
    return ranges;
}

void parse_blinks(const JsonReader& root, Controls& controls) {
    if (root.has("blink_gap_frames")) {
        const JsonReader gaps = root.at("blink_gap_frames");
        if (gaps.json().is_array()) {
            controls.blink_gap_frames = gaps.integers(1, kMaxFrames);
            if (controls.blink_gap_frames.empty()) gaps.fail("one gap or more");
        } else {
            controls.blink_gap_frames = {gaps.integer(-1, kMaxFrames)};
        }
    }
    if (root.has("blink_starts")) {
        const JsonReader starts = root.at("blink_starts");
        if (root.has("blink_gap_frames")) starts.fail("either blink_starts or blink_gap_frames");
        controls.blink_starts = starts.integers(0, kMaxFrames);
        if (controls.blink_starts.empty()) starts.fail("one frame or more");
        std::sort(controls.blink_starts.begin(), controls.blink_starts.end());
    }
}

// Everything but blinks and the controls of frames.
void parse_session(const JsonReader& root, Controls& controls) {
    const auto flag = [&](std::string_view key, std::optional<bool>& target) {
        if (root.has(key)) target = root.at(key).boolean();
    };
    const auto frames = [&](std::string_view key) {
        return root.has(key) ? root.at(key).integer(0, 100'000) : int64_t{0};
    };
    controls.fade_in_frames = frames("fade_in_frames");
    controls.fade_out_frames = frames("fade_out_frames");
    if (root.has("fade_to")) {
        const std::string target = root.at("fade_to").text();
        if (target != "source" && target != "first_frame") {
            root.at("fade_to").fail("\"source\" or \"first_frame\"");
        }
        controls.fade_to = target == "source" ? FadeTo::source : FadeTo::first_frame;
    }
    flag("relative", controls.relative);
    flag("drive_eyes", controls.drive_eyes);
    flag("gaze_correction", controls.gaze_correction);
    flag("stitching", controls.stitching);
    if (root.has("driven_spans")) {
        controls.driven_spans = weights(root.at("driven_spans"), -kMaxFactor, kMaxFactor);
    }
    if (root.has("smoothing_frames")) {
        controls.smoothing_frames = root.at("smoothing_frames").integer(1, 99);
        if (*controls.smoothing_frames % 2 == 0) root.at("smoothing_frames").fail("an odd number");
    }
    if (root.has("fusion")) {
        controls.fusion = root.at("fusion").text();
        if (*controls.fusion != "offline" && *controls.fusion != "online") {
            root.at("fusion").fail("\"offline\" or \"online\"");
        }
    }
    if (root.has("reset_interval_windows")) {
        controls.reset_interval_windows = root.at("reset_interval_windows").integer(0, 1'000'000);
    }
    if (root.has("eta")) controls.eta = root.at("eta").number(0.0, 1.0);
    if (root.has("first_frame_eyes")) {
        controls.first_frame_eyes = root.at("first_frame_eyes").boolean();
    }
}

}  // namespace

Controls parse_controls(std::string_view json_text, const std::string& origin) {
    const auto document = JsonReader::parse(json_text, origin, ErrorCode::bad_input);
    const JsonReader root(document, origin, ErrorCode::bad_input);
    root.expect_keys({"frames",
                      "fade_in_frames",
                      "fade_out_frames",
                      "fade_to",
                      "relative",
                      "driven_spans",
                      "drive_eyes",
                      "gaze_correction",
                      "stitching",
                      "blink_gap_frames",
                      "blink_starts",
                      "smoothing_frames",
                      "fusion",
                      "reset_interval_windows",
                      "eta",
                      "first_frame_eyes",
                      "emotion",
                      "pose_offset_deg",
                      "pose_factor",
                      "expression_offset",
                      "voice_activity",
                      "fade",
                      "fade_spans",
                      "gaze_deg",
                      "blink",
                      "eye_open",
                      "eye_ball"});
    Controls controls;
    controls.overall = parse_frame(root);
    if (root.has("frames")) controls.frames = parse_ranges(root.at("frames"));
    parse_blinks(root, controls);
    parse_session(root, controls);
    return controls;
}

Controls read_controls(const std::filesystem::path& file) {
    return parse_controls(read_text(file), file.string());
}

}  // namespace newscaster
