// Controls: the file, the checks against a pack, what becomes of a frame, and condition rows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/error_test_util.h"
#include "core/file.h"
#include "motion/blink_schedule.h"
#include "motion/condition_rows.h"
#include "motion/control_track.h"
#include "newscaster/error.h"

namespace newscaster::motion {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

pack::Manifest studio() {
    const auto file = std::filesystem::path(NEWSCASTER_SOURCE_DIR) / "packs/studio/pack.json";
    return pack::parse_manifest(read_text(file), file.string());
}

std::string error_of(const std::function<void()>& action) {
    return testing_support::error_of(action, ErrorCode::bad_input);
}

TEST(ControlsFile, EveryMemberIsRead) {
    const Controls controls = parse_controls(R"({
        "emotion": {"happy": 0.7, "sad": 0.3}, "pose_offset_deg": {"yaw": 5},
        "pose_factor": {"pitch": 0.5}, "expression_offset": {"jawOpen": 0.1, "3": [0, 1, 2]},
        "voice_activity": 0.5, "fade": 0.25, "fade_spans": ["yaw"], "gaze_deg": {"pitch": -4},
        "blink": 1, "eye_open": [0.3, 0.4], "eye_ball": [1, 2, 3, 4, 5, 6],
        "frames": [{"first": 3, "last": 9, "emotion": "angry"}, {"first": 20}],
        "fade_in_frames": 5, "fade_out_frames": 6, "fade_to": "first_frame", "relative": true,
        "driven_spans": {"yaw": 0.5}, "drive_eyes": false, "gaze_correction": false,
        "stitching": false, "blink_gap_frames": [10, 20], "smoothing_frames": 3,
        "fusion": "online", "reset_interval_windows": 2, "eta": 1, "first_frame_eyes": true})",
                                             "c.json");
    EXPECT_EQ(controls.overall.emotion.at("sad"), 0.3);
    EXPECT_EQ(controls.overall.pose_offset_deg->yaw, 5.0);
    EXPECT_EQ(controls.overall.pose_offset_deg->pitch, 0.0);
    EXPECT_EQ(controls.overall.pose_factor->pitch, 0.5);
    EXPECT_EQ(controls.overall.pose_factor->roll, 1.0);
    EXPECT_THAT(controls.overall.expression_offset.at("jawOpen"), ElementsAre(0.1));
    EXPECT_THAT(controls.overall.expression_offset.at("3"), ElementsAre(0, 1, 2));
    EXPECT_EQ(controls.overall.voice_activity, 0.5);
    EXPECT_EQ(controls.overall.fade, 0.25);
    EXPECT_THAT(controls.overall.fade_spans, ElementsAre("yaw"));
    EXPECT_EQ(controls.overall.gaze_deg->pitch, -4.0);
    EXPECT_EQ(controls.overall.blink, 1.0);
    EXPECT_THAT(controls.overall.eye_open, ElementsAre(0.3, 0.4));
    EXPECT_EQ(controls.overall.eye_ball.size(), 6U);
    ASSERT_EQ(controls.frames.size(), 2U);
    EXPECT_EQ(controls.frames[0].last, 9);
    EXPECT_EQ(controls.frames[0].controls.emotion.at("angry"), 1.0);
    EXPECT_EQ(controls.frames[1].last, std::numeric_limits<int64_t>::max());
    EXPECT_EQ(controls.fade_in_frames, 5);
    EXPECT_EQ(controls.fade_out_frames, 6);
    EXPECT_EQ(controls.fade_to, FadeTo::first_frame);
    EXPECT_EQ(controls.relative, true);
    EXPECT_EQ(controls.driven_spans.at("yaw"), 0.5);
    EXPECT_EQ(controls.drive_eyes, false);
    EXPECT_EQ(controls.gaze_correction, false);
    EXPECT_EQ(controls.stitching, false);
    EXPECT_THAT(controls.blink_gap_frames, ElementsAre(10, 20));
    EXPECT_EQ(controls.smoothing_frames, 3);
    EXPECT_EQ(controls.fusion, "online");
    EXPECT_EQ(controls.reset_interval_windows, 2);
    EXPECT_EQ(controls.eta, 1.0);
    EXPECT_TRUE(controls.first_frame_eyes);
}

TEST(ControlsFile, FaultsNameFileAndPath) {
    const std::vector<std::pair<const char*, const char*>> cases{
        {"{", "c.json"},
        {"[]", "c.json"},
        {R"({"yaw": 5})", "c.json: yaw: unknown"},
        {R"({"emotion": {}})", "c.json: emotion: found {}"},
        {R"({"emotion": {"happy": 0}})", "c.json: emotion: found"},
        {R"({"emotion": {"happy": 2}})", "c.json: emotion.happy: found 2"},
        {R"({"pose_offset_deg": {"jaw": 1}})", "c.json: pose_offset_deg.jaw: unknown"},
        {R"({"pose_offset_deg": {"yaw": 181}})", "c.json: pose_offset_deg.yaw: found 181"},
        {R"({"pose_factor": 2})", "c.json: pose_factor: found 2"},
        {R"({"expression_offset": {"jawOpen": "a"}})", "c.json: expression_offset.jawOpen"},
        {R"({"voice_activity": 1.5})", "c.json: voice_activity: found 1.5"},
        {R"({"fade_to": "black"})", "c.json: fade_to: found \"black\""},
        {R"({"fade_in_frames": -1})", "c.json: fade_in_frames: found -1"},
        {R"({"blink_gap_frames": []})", "c.json: blink_gap_frames: found []"},
        {R"({"blink_gap_frames": 3, "blink_starts": [1]})", "c.json: blink_starts"},
        {R"({"smoothing_frames": 4})", "c.json: smoothing_frames: found 4"},
        {R"({"fusion": "both"})", "c.json: fusion: found \"both\""},
        {R"({"eta": 2})", "c.json: eta: found 2"},
        {R"({"frames": [{"last": 3}]})", "c.json: frames[0].first: missing"},
        {R"({"frames": [{"first": 4, "last": 3}]})", "c.json: frames[0].last: found 3"},
        {R"({"frames": [{"first": 0, "eta": 1}]})", "c.json: frames[0].eta: unknown"}};
    for (const auto& [text, message] : cases) {
        EXPECT_THAT(error_of([&, text = text] { (void)parse_controls(text, "c.json"); }),
                    HasSubstr(message))
            << text;
    }
}

TEST(ControlTrack, RangesGoOverTheOverallControlsAndLaterOnesOverEarlier) {
    const auto controls = parse_controls(
        R"({"pose_offset_deg": {"yaw": 1}, "voice_activity": 0.5, "frames": [
            {"first": 2, "last": 4, "voice_activity": 0.25, "blink": 1},
            {"first": 4, "pose_offset_deg": {"yaw": 9}}]})",
        "c");
    const ControlTrack track(studio(), controls, "happy");
    EXPECT_EQ(track.at(-3).pose_offset_deg->yaw, 1.0);
    EXPECT_EQ(track.at(1).voice_activity, 0.5);
    EXPECT_FALSE(track.at(1).blink);
    EXPECT_EQ(track.at(2).voice_activity, 0.25);
    EXPECT_EQ(track.at(4).voice_activity, 0.25);
    EXPECT_EQ(track.at(4).pose_offset_deg->yaw, 9.0);
    EXPECT_EQ(track.at(5).voice_activity, 0.5);
    EXPECT_EQ(track.at(1000).pose_offset_deg->yaw, 9.0);
    EXPECT_EQ(track.at(7).emotion.at("happy"), 1.0);
}

TEST(ControlTrack, RefusesWhatThePackCannotDo) {
    const std::vector<std::pair<const char*, const char*>> cases{
        {R"({"emotion": "hangry"})", "hangry"},
        {R"({"expression_offset": {"jawDrop": 1}})", "jawDrop"},
        {R"({"expression_offset": {"3": [0, 0, 0]}})", "\"3\""},
        {R"({"expression_offset": {"jawOpen": [1, 2]}})", "found 2 numbers, wanted 1"},
        {R"({"fade_spans": ["face"]})", "face"},
        {R"({"driven_spans": ["face"]})", "face"},
        {R"({"eye_open": [1, 1]})", "eye_open: found 2 numbers, wanted 0"},
        {R"({"stitching": true})", "no stitch graph"},
        {R"({"frames": [{"first": 9, "emotion": "odd"}]})", "odd"}};
    for (const auto& [text, message] : cases) {
        EXPECT_THAT(error_of([&, text = text] {
                        const ControlTrack track(studio(), parse_controls(text, "c"), "");
                    }),
                    HasSubstr(message))
            << text;
    }
    Controls reversed;
    reversed.frames = {{.first = 3, .last = 2, .controls = {}}};
    EXPECT_THAT(error_of([&] { const ControlTrack track(studio(), reversed, ""); }),
                HasSubstr("found 3 to 2"));
}

// audio 1 | emotion 3 | blink value | blink mask | eye_open 2 | source_keypoints 3.
pack::Manifest conditioned() {
    using Kind = pack::ConditionKind;
    pack::Manifest manifest;
    manifest.audio.feature_dims = 1;
    manifest.keypoints.count = 1;
    const auto add = [&](Kind kind, int64_t size) -> pack::ConditionSpan& {
        pack::ConditionSpan span;
        span.kind = kind;
        span.size = size;
        span.offset = manifest.motion.condition_dims;
        manifest.motion.condition_dims += size;
        manifest.motion.conditions.push_back(span);
        return manifest.motion.conditions.back();
    };
    add(Kind::audio, 1);
    auto& emotion = add(Kind::emotion, 3);
    emotion.labels = {"sad", "calm", "glad"};
    emotion.default_label = "calm";
    emotion.default_labels = {"calm"};
    add(Kind::blink_value, 1);
    add(Kind::blink_mask, 1);
    add(Kind::eye_open, 2);
    add(Kind::source_keypoints, 3);
    return manifest;
}

const AvatarConditions kAvatar{.eye_open = {{0.1F, 0.2F}, {0.3F, 0.4F}},
                               .eye_ball = {},
                               .source_keypoints = {7, 8, 9},
                               .source_of = [](int64_t frame) { return frame % 2; }};

std::vector<float> row_of(const pack::Manifest& manifest, const Controls& controls, int64_t frame) {
    ConditionRows rows(manifest, ControlTrack(manifest, controls, ""), kAvatar, 1);
    std::vector<float> row(static_cast<size_t>(manifest.motion.condition_dims), -1.0F);
    rows.fill(frame, std::vector<float>{5.0F}, row);
    return row;
}

TEST(ConditionControls, WithoutControlsTheAvatarAndThePackDecide) {
    EXPECT_THAT(row_of(conditioned(), {}, 0), ElementsAre(5, 0, 1, 0, 0, 0, 0.1F, 0.2F, 7, 8, 9));
    EXPECT_THAT(row_of(conditioned(), {}, 1), ElementsAre(5, 0, 1, 0, 0, 0, 0.3F, 0.4F, 7, 8, 9));
    EXPECT_THAT(row_of(conditioned(), {}, -5), ElementsAre(5, 0, 1, 0, 0, 0, 0.1F, 0.2F, 7, 8, 9));
}

TEST(ConditionControls, EmotionsMixAndChangeByFrame) {
    const auto controls = parse_controls(
        R"({"emotion": {"sad": 0.25, "glad": 0.75}, "frames": [{"first": 2, "emotion": "glad"}]})",
        "c");
    EXPECT_THAT(row_of(conditioned(), controls, 0),
                ElementsAre(5, 0.25F, 0, 0.75F, 0, 0, 0.1F, 0.2F, 7, 8, 9));
    EXPECT_THAT(row_of(conditioned(), controls, 2),
                ElementsAre(5, 0, 0, 1, 0, 0, 0.1F, 0.2F, 7, 8, 9));
}

TEST(ConditionControls, SoftmaxOfTheLogitAtEveryChosenLabel) {
    auto manifest = conditioned();
    manifest.motion.conditions[1].softmax_logit = 8.0;
    const auto mixed = row_of(manifest, parse_controls(R"({"emotion": ["sad", "glad"]})", "c"), 0);
    const double total = 2.0 * std::exp(8.0) + 1.0;
    EXPECT_NEAR(mixed[1], std::exp(8.0) / total, 1e-7);
    EXPECT_NEAR(mixed[2], 1.0 / total, 1e-7);
    EXPECT_EQ(mixed[1], mixed[3]);
}

TEST(ConditionControls, EyesFollowTheFrameOrTheFirstSource) {
    Controls controls;
    controls.first_frame_eyes = true;
    EXPECT_EQ(row_of(conditioned(), controls, 1)[6], 0.1F);
    controls.overall.eye_open = {0.5, 0.6};
    const auto row = row_of(conditioned(), controls, 1);
    EXPECT_EQ(row[6], 0.5F);
    EXPECT_EQ(row[7], 0.6F);
}

TEST(ConditionControls, BlinksAreValuesUnderAMask) {
    const auto manifest = conditioned();
    const auto controls = parse_controls(
        R"({"blink_starts": [4], "frames": [{"first": 9, "last": 9, "blink": 0.5}]})", "c");
    ConditionRows rows(manifest, ControlTrack(manifest, controls, ""), kAvatar, 1);
    std::vector<float> row(11);
    for (int64_t frame = 0; frame < 20; ++frame) {
        rows.fill(frame, std::vector<float>{5.0F}, row);
        const bool inside = frame >= 4 && frame < 4 + static_cast<int64_t>(kBlinkCurve.size());
        float wanted = inside ? kBlinkCurve.at(static_cast<size_t>(frame - 4)) : 0.0F;
        if (frame == 9) wanted = 0.5F;
        EXPECT_EQ(row[4], wanted) << frame;
        EXPECT_EQ(row[5], 1.0F);
    }
    Controls none;
    none.blink_gap_frames = {-1};
    EXPECT_EQ(row_of(manifest, none, 50)[4], 0.0F);
    EXPECT_EQ(row_of(manifest, none, 50)[5], 1.0F);
}

TEST(ConditionControls, RefusesAnAvatarWithoutTheConditions) {
    const auto manifest = conditioned();
    EXPECT_THROW(ConditionRows(manifest, {}, {}, 1), Error);
    AvatarConditions narrow = kAvatar;
    narrow.eye_open[1] = {1.0F};
    EXPECT_THROW(ConditionRows(manifest, {}, narrow, 1), Error);
}

std::vector<int64_t> places(BlinkSchedule schedule, int64_t frames, int64_t end = INT64_MAX) {
    std::vector<int64_t> result;
    for (int64_t i = 0; i < frames; ++i) result.push_back(schedule.place(i, end));
    return result;
}

TEST(BlinkSchedule, GapsStartsAndTheEndOfTheTrack) {
    Controls controls;
    controls.blink_gap_frames = {2, 1};
    // Open 2, blink 3, open 1, blink 3, open 2, ...
    EXPECT_THAT(places({controls, {}, 3, 1}, 12),
                ElementsAre(-1, -1, 0, 1, 2, -1, 0, 1, 2, -1, -1, 0));
    EXPECT_THAT(places({controls, {}, 3, 1}, 8, 8), ElementsAre(-1, -1, 0, 1, 2, -1, -1, -1));
    Controls starts;
    starts.blink_starts = {1, 5};
    EXPECT_THAT(places({starts, {}, 2, 1}, 9), ElementsAre(-1, 0, 1, -1, -1, 0, 1, -1, -1));
    EXPECT_THAT(places({}, 3), ElementsAre(-1, -1, -1));
}

TEST(BlinkSchedule, RandomGapsStayInRangeAndDependOnTheSeed) {
    const pack::BlinkSpec spec{
        .offsets = "", .gap_frames = 0, .min_gap_frames = 4, .max_gap_frames = 9};
    const auto track = places({Controls{}, spec, 3, 42}, 2000);
    EXPECT_EQ(places({Controls{}, spec, 3, 42}, 2000), track);
    EXPECT_NE(places({Controls{}, spec, 3, 43}, 2000), track);
    int64_t gap = 0;
    std::vector<int64_t> seen(10);
    for (const int64_t place : track) {
        if (place == 0) {
            ASSERT_GE(gap, 4);
            ASSERT_LE(gap, 9);
            ++seen[static_cast<size_t>(gap)];
        }
        gap = place < 0 ? gap + 1 : 0;
    }
    for (size_t i = 4; i < seen.size(); ++i) EXPECT_GT(seen[i], 0) << i;
}

}  // namespace
}  // namespace newscaster::motion
