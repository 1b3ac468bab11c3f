// MotionMixer on hand-made motion: mixing with the source's, and each control alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "motion/motion_mixer.h"

namespace newscaster::motion {
namespace {

using pack::SpanKind;
using ::testing::ElementsAre;

void add_span(pack::Manifest& manifest, const std::string& name, SpanKind kind, int64_t size) {
    pack::MotionSpan span;
    span.name = name;
    span.kind = kind;
    span.size = size;
    span.offset = manifest.motion.dims;
    manifest.motion.dims += size;
    manifest.motion.layout.push_back(span);
}

// scale | pitch | yaw | four eyeLook shapes of each eye, jawOpen.
pack::Manifest shapes_manifest() {
    pack::Manifest manifest;
    manifest.keypoints.count = 1;
    add_span(manifest, "scale", SpanKind::scale, 1);
    add_span(manifest, "pitch", SpanKind::pitch_deg, 1);
    add_span(manifest, "yaw", SpanKind::yaw_deg, 1);
    add_span(manifest, "shapes", SpanKind::blendshapes, 9);
    manifest.motion.layout[0].neutral = 1.0;
    auto& shapes = manifest.motion.layout.back();
    shapes.channels = {"eyeLookInLeft",   "eyeLookOutLeft",   "eyeLookInRight",
                       "eyeLookOutRight", "eyeLookUpLeft",    "eyeLookDownLeft",
                       "eyeLookUpRight",  "eyeLookDownRight", "jawOpen"};
    shapes.clipped = true;
    shapes.high = 1.0;
    return manifest;
}

constexpr size_t kYaw = 2;
constexpr size_t kInLeft = 3;
constexpr size_t kOutLeft = 4;
constexpr size_t kOutRight = 6;
constexpr size_t kDownLeft = 8;
constexpr size_t kJawOpen = 11;

using Row = std::vector<float>;

Row shapes_row(float yaw, float jaw) {
    Row row(12, 0.0F);
    row[0] = 1.0F;
    row[kYaw] = yaw;
    row[kJawOpen] = jaw;
    return row;
}

std::vector<MixedFrame> run(const pack::Manifest& manifest, const std::string& controls,
                            const std::vector<Row>& track, const std::vector<SourcePose>& sources,
                            const std::vector<float>& blink = {}, double scale_ratio = 1.0) {
    MotionMixer mixer(manifest, blink, sources,
                      {.controls = ControlTrack(manifest, parse_controls(controls, "c"), ""),
                       .seed = 1,
                       .scale_ratio = scale_ratio});
    std::vector<MixedFrame> frames;
    const auto take = [&](std::vector<MixedFrame> ready) {
        for (auto& frame : ready) frames.push_back(std::move(frame));
    };
    for (size_t i = 0; i < track.size(); ++i) {
        take(mixer.push(track[i], static_cast<int64_t>(i % sources.size())));
    }
    take(mixer.finish());
    EXPECT_EQ(frames.size(), track.size());
    for (size_t i = 0; i < frames.size(); ++i) {
        EXPECT_EQ(frames[i].index, static_cast<int64_t>(i));
        EXPECT_EQ(frames[i].source, static_cast<int64_t>(i % sources.size()));
    }
    return frames;
}

std::vector<MixedFrame> run_shapes(const std::string& controls, const std::vector<Row>& track) {
    Row source = shapes_row(30.0F, 0.0F);  // the composer's business, not the mixer's
    return run(shapes_manifest(), controls, track,
               {{.canonical_keypoints = {0, 0, 0}, .motion = source}});
}

TEST(MotionMixer, WithoutControlsRowsPassUnchangedAndAtOnce) {
    const auto manifest = shapes_manifest();
    MotionMixer mixer(manifest, {}, {{{0, 0, 0}, shapes_row(1, 0)}}, {});
    const Row row = shapes_row(0.1F, 0.3F);
    const auto ready = mixer.push(row, 0);
    ASSERT_EQ(ready.size(), 1U);
    EXPECT_EQ(ready[0].motion.row, row);
}

TEST(MotionMixer, PoseOffsetThenFactor) {
    const auto frames = run_shapes(
        R"({"gaze_correction": false, "pose_offset_deg": {"yaw": 4},
            "frames": [{"first": 1, "pose_factor": {"yaw": 0.5, "pitch": 3}}]})",
        {shapes_row(2, 0), shapes_row(2, 0)});
    EXPECT_EQ(frames[0].motion.row[kYaw], 6.0F);
    EXPECT_EQ(frames[1].motion.row[kYaw], 3.0F);
    EXPECT_EQ(frames[0].motion.row[kInLeft], 0.0F);
}

TEST(MotionMixer, EyesStayOnTheCameraWhenTheUserTurnsTheHead) {
    // The head turns 6 degrees to the picture's left: the eyes 6 degrees to its right.
    const auto frames = run_shapes(R"({"pose_offset_deg": {"yaw": 6}})", {shapes_row(2, 0)});
    EXPECT_NEAR(frames[0].motion.row[kOutLeft], 0.2F, 1e-6);
    EXPECT_EQ(frames[0].motion.row[kInLeft], 0.0F);
    EXPECT_EQ(frames[0].motion.row[kOutRight], 0.0F);
}

TEST(MotionMixer, GazeTurnsBothEyes) {
    Row row = shapes_row(0, 0);
    row[kOutLeft] = 0.1F;  // three degrees to the picture's right already
    const auto frames = run_shapes(R"({"gaze_deg": {"yaw": 9, "pitch": 15}})", {row});
    EXPECT_NEAR(frames[0].motion.row[kInLeft], 0.2F, 1e-6);
    EXPECT_EQ(frames[0].motion.row[kOutLeft], 0.0F);
    EXPECT_NEAR(frames[0].motion.row[kOutRight], 0.3F, 1e-6);
    EXPECT_NEAR(frames[0].motion.row[kDownLeft], 0.5F, 1e-6);
}

TEST(MotionMixer, ExpressionOffsetsAreClippedAsTheSpanIs) {
    const auto frames = run_shapes(R"({"expression_offset": {"jawOpen": 0.3}})",
                                   {shapes_row(0, 0.1F), shapes_row(0, 0.9F)});
    EXPECT_NEAR(frames[0].motion.row[kJawOpen], 0.4F, 1e-6);
    EXPECT_EQ(frames[1].motion.row[kJawOpen], 1.0F);
}

TEST(MotionMixer, VoiceActivityBlendsTheExpressionAlone) {
    const auto frames = run_shapes(R"({"voice_activity": 0.25})", {shapes_row(8, 0.8F)});
    EXPECT_NEAR(frames[0].motion.row[kJawOpen], 0.2F, 1e-6);
    EXPECT_EQ(frames[0].motion.row[kYaw], 8.0F);
}

TEST(MotionMixer, FadesInFromAndOutToTheSourceWithoutKnowingTheEnd) {
    const std::vector<Row> track(8, shapes_row(8, 0.8F));
    const auto frames = run_shapes(R"({"fade_in_frames": 2, "fade_out_frames": 4})", track);
    std::vector<float> yaws;
    yaws.reserve(frames.size());
    for (const auto& frame : frames) yaws.push_back(frame.motion.row[kYaw]);
    EXPECT_THAT(yaws, ElementsAre(0, 4, 8, 8, 6, 4, 2, 0));
    EXPECT_EQ(frames[7].motion.row[0], 1.0F);  // scale rests at 1
    EXPECT_EQ(frames[7].motion.row[kJawOpen], 0.0F);
}

TEST(MotionMixer, FadesToTheFirstFrameAndOnlyTheSpansAsked) {
    const auto frames =
        run_shapes(R"({"fade_to": "first_frame", "fade": 0.5, "fade_spans": ["yaw"]})",
                   {shapes_row(2, 0.2F), shapes_row(8, 0.8F)});
    EXPECT_EQ(frames[1].motion.row[kYaw], 5.0F);
    EXPECT_EQ(frames[1].motion.row[kJawOpen], 0.8F);
}

TEST(MotionMixer, DrivenSpansRelativeAndEyesWorkForShapes) {
    const auto frames = run_shapes(R"({"relative": true, "driven_spans": {"yaw": 0.5}})",
                                   {shapes_row(2, 0.2F), shapes_row(8, 0.8F)});
    EXPECT_EQ(frames[0].motion.row[kYaw], 0.0F);
    EXPECT_EQ(frames[1].motion.row[kYaw], 3.0F);
    EXPECT_EQ(frames[1].motion.row[kJawOpen], 0.0F);
    Row looking = shapes_row(0, 0.5F);
    looking[kOutLeft] = 0.5F;
    const auto still = run_shapes(R"({"drive_eyes": false})", {looking});
    EXPECT_EQ(still[0].motion.row[kOutLeft], 0.0F);
    EXPECT_EQ(still[0].motion.row[kJawOpen], 0.5F);
}

// Binned yaw (3 bins of 10 degrees from -10) | expression of three keypoints: lips, eye, cheek.
pack::Manifest points_manifest() {
    pack::Manifest manifest;
    manifest.keypoints.count = 3;
    manifest.keypoints.groups = {{"lips", {0}}, {"eyes", {1}}};
    add_span(manifest, "yaw", SpanKind::yaw_deg, 3);
    add_span(manifest, "expression", SpanKind::expression, 9);
    manifest.motion.layout[0].bins = pack::PoseBins{.step_deg = 10.0, .offset_deg = -10.0};
    pack::CompositionSpec composition;
    composition.relative = true;
    composition.driven_image = {{"yaw", 1.0}, {"expression", 1.0}};
    composition.driven_video = {{"expression", 1.0}};
    composition.driven_keypoints = "lips";
    composition.eye_keypoints = "eyes";
    composition.fade_spans = {"expression"};
    composition.drive_eyes_video = false;
    composition.gaze = pack::GazeSpec{
        .yaw_ratio = 0.5,
        .pitch_ratio = 1.0,
        .offsets = {{.keypoint = 1, .axis = 0, .by_pitch = false, .above = 0.1, .below = 0.2}}};
    manifest.motion.composition = composition;
    return manifest;
}

constexpr float kLogit = 30.0F;  // softmax of it against 0 is 1 to float precision

Row points_row(int bin, float expression) {
    Row row(12, expression);
    for (int i = 0; i < 3; ++i) row[static_cast<size_t>(i)] = i == bin ? kLogit : 0.0F;
    return row;
}

SourcePose points_source() {
    Row motion = points_row(1, 0.0F);
    for (size_t i = 3; i < motion.size(); ++i) motion[i] = 0.01F * static_cast<float>(i);
    return {.canonical_keypoints = Row(9, 0.0F), .motion = motion};
}

double yaw_of(const MixedFrame& frame) {
    return frame.motion.angle(points_manifest().motion, 1);
}

TEST(MotionMixer, BinsAreSoftmaxExpectations) {
    const auto& spec = points_manifest().motion;
    EXPECT_NEAR(angle_deg(spec, SpanKind::yaw_deg, points_row(0, 0)), -10.0, 1e-9);
    EXPECT_NEAR(angle_deg(spec, SpanKind::yaw_deg, points_row(2, 0)), 10.0, 1e-9);
    Row even = points_row(2, 0);
    even[1] = kLogit;
    EXPECT_NEAR(angle_deg(spec, SpanKind::yaw_deg, even), 5.0, 1e-9);
    EXPECT_EQ(angle_deg(spec, SpanKind::pitch_deg, even), 0.0);
}

TEST(MotionMixer, RelativeMotionIsTheSourcePlusTheChangeOfDrivenKeypoints) {
    const auto source = points_source();
    const auto frames = run(points_manifest(), R"({"gaze_correction": false})",
                            {points_row(1, 0.5F), points_row(2, 0.75F)}, {source});
    EXPECT_EQ(frames[0].motion.row, source.motion);
    const Row& row = frames[1].motion.row;
    for (size_t i = 3; i < 12; ++i) {
        const float change = i < 9 ? 0.25F : 0.0F;  // lips and eye move, the cheek does not
        EXPECT_NEAR(row[i], source.motion[i] + change, 1e-6) << i;
    }
    EXPECT_NEAR(yaw_of(frames[1]), 10.0, 1e-6);  // logits: source + (second - first)
}

TEST(MotionMixer, ReferenceCanBeGivenAndAbsoluteMotionNeedsNone) {
    const auto manifest = points_manifest();
    MotionMixer mixer(manifest, {}, {points_source()}, {});
    mixer.set_reference(points_row(1, 0.25F));
    const auto frames = mixer.push(points_row(1, 0.5F), 0);
    EXPECT_NEAR(frames[0].motion.row[3], 0.03F + 0.25F, 1e-6);
    const auto absolute =
        run(manifest, R"({"relative": false})", {points_row(1, 0.5F)}, {points_source()});
    EXPECT_NEAR(absolute[0].motion.row[3], 0.5F, 1e-6);
}

TEST(MotionMixer, ScaleRatioMultipliesPoseAndExpressionChanges) {
    const auto frames =
        run(points_manifest(), R"({"gaze_correction": false})",
            {points_row(1, 0.5F), points_row(1, 0.75F)}, {points_source()}, {}, 2.0);
    EXPECT_NEAR(frames[1].motion.row[3], 0.03F + 2.0F * 0.25F, 1e-6);
}

TEST(MotionMixer, GazeTableFollowsTheTurnOfTheHead) {
    const auto frames =
        run(points_manifest(), "{}",
            {points_row(1, 0.0F), points_row(2, 0.0F), points_row(0, 0.0F)}, {points_source()});
    const float rest = points_source().motion[6];
    EXPECT_NEAR(frames[0].motion.row[6], rest, 1e-6);
    EXPECT_NEAR(frames[1].motion.row[6], rest + 10.0 * 0.5 * 0.1, 1e-5);
    EXPECT_NEAR(frames[2].motion.row[6], rest - 10.0 * 0.5 * 0.2, 1e-5);
    const auto asked = run(points_manifest(), R"({"gaze_deg": {"yaw": -4}})", {points_row(1, 0.0F)},
                           {points_source()});
    EXPECT_NEAR(asked[0].motion.row[6], rest + 4.0 * 0.5 * 0.1, 1e-5);
}

TEST(MotionMixer, BlinkOffsetsGoOverTheSourceAndAreNeverCut) {
    auto manifest = points_manifest();
    manifest.motion.composition->blink = {
        .offsets = "blink", .gap_frames = 2, .min_gap_frames = 1, .max_gap_frames = 1};
    std::vector<float> blink(2 * 9, 0.0F);
    for (size_t i = 0; i < 9; ++i) blink[9 + i] = -1.0F;  // shut in the second of two frames
    const std::vector<Row> track(7, points_row(1, 0.5F));
    const auto frames = run(manifest, "{}", track, {points_source()}, blink);
    const Row rest = points_source().motion;
    for (size_t i = 0; i < frames.size(); ++i) {
        const float shut = i == 3 ? -1.0F : 0.0F;  // the blink at 6 would not be over at 7
        EXPECT_NEAR(frames[i].motion.row[6], rest[6] + shut, 1e-6) << i;
        EXPECT_NEAR(frames[i].motion.row[3], rest[3], 1e-6) << i;
    }
}

TEST(MotionMixer, VideosKeepTheirEyesAndPose) {
    const auto frames = run(points_manifest(), "{}", {points_row(1, 0.5F), points_row(2, 0.75F)},
                            {points_source(), points_source()});
    const Row rest = points_source().motion;
    EXPECT_NEAR(frames[1].motion.row[3], rest[3] + 0.25F, 1e-6);
    EXPECT_EQ(frames[1].motion.row[6], rest[6]);
    EXPECT_NEAR(yaw_of(frames[1]), 0.0, 1e-6);
}

TEST(MotionMixer, DegreesOfABinnedPoseCanBeOffsetAndFaded) {
    const auto frames = run(points_manifest(),
                            R"({"pose_offset_deg": {"yaw": 6}, "fade_spans": ["yaw"],
            "frames": [{"first": 1, "fade": 0.5}], "expression_offset": {"2": [0, 0.5, 0]}})",
                            {points_row(1, 0.0F), points_row(2, 0.0F)}, {points_source()});
    EXPECT_NEAR(yaw_of(frames[0]), 6.0, 1e-6);
    EXPECT_NEAR(yaw_of(frames[1]), 0.5 * 16.0, 1e-6);
    EXPECT_NEAR(frames[0].motion.row[10], points_source().motion[10] + 0.5F, 1e-6);
}

TEST(MotionMixer, ComposerUsesMixedRowsAsTheyAre) {
    auto manifest = points_manifest();
    const Composer composer(manifest, {}, {points_source()});
    const auto points = composer.source_keypoints(0);
    for (size_t i = 0; i < points.size(); ++i) {
        EXPECT_FLOAT_EQ(points[i], points_source().motion[3 + i]);
    }
}

}  // namespace
}  // namespace newscaster::motion
