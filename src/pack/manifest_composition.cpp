#include "pack/manifest_sections.h"

namespace newscaster::pack {

namespace {

constexpr double kMaxWeight = 1e3;
constexpr int64_t kMaxGapFrames = 1'000'000;
constexpr std::array<std::pair<std::string_view, int64_t>, 3> kAxes{{{"x", 0}, {"y", 1}, {"z", 2}}};
constexpr std::array<std::pair<std::string_view, bool>, 2> kGazeAngles{
    {{"yaw", false}, {"pitch", true}}};

void check_span_name(const JsonReader& reader, const std::string& name, const MotionSpec& motion) {
    const bool known = std::any_of(motion.layout.begin(), motion.layout.end(),
                                   [&](const auto& span) { return span.name == name; });
    if (known) return;
    std::vector<std::string> names;
    for (const auto& span : motion.layout) names.push_back(span.name);
    reader.fail(fmt::format("one of the spans: {}", fmt::join(names, ", ")));
}

// ["expression", "yaw"], or {"expression": 1.0, "yaw": 0.5}.
std::map<std::string, double> parse_driven(const JsonReader& reader, const MotionSpec& motion) {
    std::map<std::string, double> driven;
    if (reader.json().is_object()) {
        for (const auto& name : reader.keys()) {
            check_span_name(reader.at(name), name, motion);
            driven.emplace(name, reader.at(name).number(-kMaxWeight, kMaxWeight));
        }
        return driven;
    }
    const auto names = unique_texts(reader);
    for (size_t i = 0; i < names.size(); ++i) {
        check_span_name(reader.at(i), names[i], motion);
        driven.emplace(names[i], 1.0);
    }
    return driven;
}

std::string parse_group(const JsonReader& parent, std::string_view key,
                        const KeypointSpec& keypoints) {
    if (!parent.has(key)) return {};
    const JsonReader reader = parent.at(key);
    std::string name = reader.text();
    if (!keypoints.groups.contains(name)) reader.fail("the name of a group in keypoints.groups");
    return name;
}

BlinkSpec parse_blink(const JsonReader& reader) {
    reader.expect_keys({"offsets", "gap_frames", "random_gap_frames"});
    BlinkSpec blink;
    if (!reader.at("offsets").json().is_null()) blink.offsets = reader.at("offsets").text();
    blink.gap_frames = reader.at("gap_frames").integer(-1, kMaxGapFrames);
    const JsonReader gap = reader.at("random_gap_frames");
    const auto range = gap.integers(1, kMaxGapFrames);
    if (range.size() != 2 || range[0] > range[1]) gap.fail("[shortest, longest]");
    blink.min_gap_frames = range[0];
    blink.max_gap_frames = range[1];
    return blink;
}

GazeSpec parse_gaze(const JsonReader& reader, const KeypointSpec& keypoints) {
    reader.expect_keys({"yaw_ratio", "pitch_ratio", "offsets"});
    GazeSpec gaze;
    gaze.yaw_ratio = reader.at("yaw_ratio").number(-kMaxWeight, kMaxWeight);
    gaze.pitch_ratio = reader.at("pitch_ratio").number(-kMaxWeight, kMaxWeight);
    const JsonReader offsets = reader.at("offsets");
    for (size_t i = 0; i < offsets.array_size(); ++i) {
        const JsonReader item = offsets.at(i);
        item.expect_keys({"keypoint", "axis", "by", "above", "below"});
        GazeOffset offset;
        offset.keypoint = item.at("keypoint").integer(0, keypoints.count - 1);
        offset.axis = one_of(item.at("axis"), kAxes);
        offset.by_pitch = one_of(item.at("by"), kGazeAngles);
        offset.above = item.at("above").number(-kMaxWeight, kMaxWeight);
        offset.below = item.at("below").number(-kMaxWeight, kMaxWeight);
        gaze.offsets.push_back(offset);
    }
    return gaze;
}

}  // namespace

CompositionSpec parse_composition(const JsonReader& reader, const Manifest& manifest) {
    reader.expect_keys({"relative", "driven_spans", "driven_keypoints", "eye_keypoints",
                        "drive_eyes", "blink", "gaze", "stitching", "fade_spans"});
    const MotionSpec& motion = manifest.motion;
    CompositionSpec composition;
    composition.relative = reader.at("relative").boolean();
    const JsonReader driven = reader.at("driven_spans");
    driven.expect_keys({"image", "video"});
    composition.driven_image = parse_driven(driven.at("image"), motion);
    composition.driven_video = parse_driven(driven.at("video"), motion);
    composition.driven_keypoints = parse_group(reader, "driven_keypoints", manifest.keypoints);
    composition.eye_keypoints = parse_group(reader, "eye_keypoints", manifest.keypoints);
    const JsonReader eyes = reader.at("drive_eyes");
    eyes.expect_keys({"image", "video"});
    composition.drive_eyes_image = eyes.at("image").boolean();
    composition.drive_eyes_video = eyes.at("video").boolean();
    composition.blink = parse_blink(reader.at("blink"));
    const bool has_expression = motion.find(SpanKind::expression) != nullptr;
    if (!composition.blink.offsets.empty() &&
        (!has_expression || composition.eye_keypoints.empty())) {
        reader.at("blink").at("offsets").fail(
            "null, because there is no expression span or no eye_keypoints");
    }
    if (reader.has("gaze")) {
        if (!has_expression) reader.at("gaze").fail("no gaze, because there is no expression span");
        composition.gaze = parse_gaze(reader.at("gaze"), manifest.keypoints);
    }
    composition.stitching = reader.at("stitching").boolean();
    const JsonReader fades = reader.at("fade_spans");
    composition.fade_spans = unique_texts(fades);
    for (size_t i = 0; i < composition.fade_spans.size(); ++i) {
        check_span_name(fades.at(i), composition.fade_spans[i], motion);
    }
    return composition;
}

}  // namespace newscaster::pack
