// The optional entries of schema version 1: what a pack with binned poses, keypoint expressions and
// a composition section may say.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "core/file.h"
#include "pack/manifest.h"
#include "pack/test_support.h"

namespace newscaster::pack {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing_support::Change;
using testing_support::changed;
using testing_support::error_of;
using testing_support::source_path;

constexpr int64_t kStudioDims = 59;
constexpr int64_t kStudioConditionDims = 90;

void replace_extent(json& tensors, int64_t from, int64_t to) {
    for (auto& [name, tensor] : tensors.items()) {
        for (auto& extent : tensor["shape"]) {
            if (extent == from) extent = to;
        }
    }
}

// The default pack's manifest, rewritten to use every optional entry: poses of 5 bins, keypoint
// expressions instead of blendshapes, conditions from the avatar, a stitch graph.
json extended() {
    json document = json::parse(read_text(source_path("packs/studio/pack.json")));
    json& motion = document["motion"];
    json& layout = motion["layout"];
    layout[0]["stored_offset"] = 1.0;
    for (size_t i = 1; i < 4; ++i) {
        layout[i]["size"] = 5;
        layout[i]["bins"] = {{"step_deg", 3.0}, {"offset_deg", -6.0}};
    }
    layout[4]["axes"] = "xy";
    layout[5] = {{"name", "expression"}, {"kind", "expression"}, {"size", 144}, {"neutral", 0.0}};
    motion["dims"] = 1 + 3 * 5 + 3 + 144;
    auto& conditions = motion["conditions"];
    conditions[1]["default_labels"] = {"happy", "neutral"};
    conditions[1]["softmax_logit"] = 8.0;
    conditions[2] = {{"kind", "eye_open"}, {"size", 2}};
    conditions[3] = {{"kind", "eye_ball"}, {"size", 6}};
    conditions.push_back({{"kind", "source_keypoints"}, {"size", 144}});
    motion["fusion"] = "online";
    motion["overlap_frames"] = 70;
    motion["smooth_windows"] = true;
    motion["last_window"] = "repeat_last";
    motion["initial_frame"] = "source";
    motion["clip"] = {{"low", "clip_low"}, {"high", "clip_high"}};
    motion["reset"] = {{"interval_windows", 3}, {"kept_dims", {0, 19}}};
    motion["source_smoothing_frames"] = 13;
    motion["diffusion"]["default_eta"] = 0.5;
    motion["diffusion"]["stochastic"] = {{"eta", 1.0}, {"steps", 50}};
    motion["composition"] = json::parse(R"({
        "relative": true,
        "driven_spans": {"image": ["expression", "yaw"], "video": {"expression": 0.5}},
        "driven_keypoints": "lips", "eye_keypoints": "eyes",
        "drive_eyes": {"image": true, "video": false},
        "blink": {"offsets": "blink", "gap_frames": 0, "random_gap_frames": [60, 100]},
        "gaze": {"yaw_ratio": 0.26, "pitch_ratio": 0.28, "offsets": [
            {"keypoint": 11, "axis": "y", "by": "pitch", "above": 0.1, "below": 0.2}]},
        "stitching": true, "fade_spans": ["expression"]})");
    document["keypoints"].erase("expression_basis");
    document["crop"]["mask"]["profile"] = "linear";
    document["crop"]["framing"] = {
        {"scale", 2.3}, {"shift_x", 0.0}, {"shift_y", -0.125}, {"rotate", true}};
    json& graphs = document["graphs"];
    for (auto& [role, graph] : graphs.items()) {
        replace_extent(graph["inputs"], kStudioDims, motion["dims"]);
        replace_extent(graph["outputs"], kStudioDims, motion["dims"]);
        replace_extent(graph["inputs"], kStudioConditionDims, 80 + 8 + 2 + 6 + 144);
    }
    const json points = {{"dtype", "f32"}, {"shape", {1, 48, 3}}};
    graphs["stitch"] = {
        {"file", "stitch.onnx"},
        {"sha256", std::string(64, 'a')},
        {"precisions", {"f32"}},
        {"variants", json::object()},
        {"inputs", {{"a", points}, {"b", points}}},
        {"outputs", {{"c", points}}},
        {"bindings",
         {{"source_keypoints", "a"}, {"driving_keypoints", "b"}, {"stitched_keypoints", "c"}}}};
    return document;
}

Manifest parse(const json& document) {
    return parse_manifest(document.dump(), "x/pack.json");
}

TEST(ExtendedManifest, OptionalEntriesHaveDefaultsThatChangeNothing) {
    json document = json::parse(read_text(source_path("packs/studio/pack.json")));
    document["crop"].erase("framing");  // the one optional entry that this pack has
    const Manifest manifest = parse_manifest(document.dump(), "x/pack.json");
    const MotionSpec& motion = manifest.motion;
    for (const auto& span : motion.layout) {
        EXPECT_FALSE(span.bins);
        EXPECT_EQ(span.stored_offset, 0.0);
        EXPECT_EQ(span.axes, 3);
    }
    EXPECT_EQ(motion.fusion, Fusion::offline);
    EXPECT_FALSE(motion.smooth_windows || motion.repeat_last_condition || motion.start_from_source);
    EXPECT_EQ(motion.reset.interval_windows, 0);
    EXPECT_EQ(motion.source_smoothing_frames, 1);
    EXPECT_EQ(motion.diffusion.default_eta, 0.0);
    EXPECT_FALSE(motion.diffusion.stochastic_eta || motion.composition || manifest.crop.framing);
    EXPECT_FALSE(motion.find(ConditionKind::emotion)->softmax_logit);
    EXPECT_FALSE(manifest.crop.mask.linear);
}

TEST(ExtendedManifest, EveryOptionalEntryIsRead) {
    const Manifest manifest = parse(extended());
    const MotionSpec& motion = manifest.motion;
    EXPECT_EQ(motion.find(SpanKind::scale)->stored_offset, 1.0);
    EXPECT_EQ(motion.find(SpanKind::yaw_deg)->bins->offset_deg, -6.0);
    EXPECT_EQ(motion.find(SpanKind::yaw_deg)->offset, 6);
    EXPECT_EQ(motion.find(SpanKind::translation)->axes, 2);
    EXPECT_EQ(motion.find(ConditionKind::source_keypoints)->offset, 96);
    EXPECT_EQ(motion.find(ConditionKind::emotion)->default_labels,
              (std::vector<std::string>{"happy", "neutral"}));
    EXPECT_EQ(motion.find(ConditionKind::emotion)->softmax_logit, 8.0);
    EXPECT_EQ(motion.fusion, Fusion::online);
    EXPECT_TRUE(motion.smooth_windows && motion.repeat_last_condition && motion.start_from_source);
    EXPECT_EQ(motion.clip_low_tensor, "clip_low");
    EXPECT_EQ(motion.clip_high_tensor, "clip_high");
    EXPECT_EQ(motion.reset.interval_windows, 3);
    EXPECT_EQ(motion.reset.kept_end, 19);
    EXPECT_EQ(motion.source_smoothing_frames, 13);
    EXPECT_EQ(motion.diffusion.default_eta, 0.5);
    EXPECT_EQ(motion.diffusion.stochastic_steps, 50);
    const CompositionSpec& composition = *motion.composition;
    EXPECT_TRUE(composition.relative && composition.stitching && composition.drive_eyes_image);
    EXPECT_FALSE(composition.drive_eyes_video);
    EXPECT_EQ(composition.driven_image,
              (std::map<std::string, double>{{"expression", 1.0}, {"yaw", 1.0}}));
    EXPECT_EQ(composition.driven_video, (std::map<std::string, double>{{"expression", 0.5}}));
    EXPECT_EQ(composition.driven_keypoints, "lips");
    EXPECT_EQ(composition.blink.offsets, "blink");
    EXPECT_EQ(composition.blink.max_gap_frames, 100);
    EXPECT_EQ(composition.gaze->offsets[0].axis, 1);
    EXPECT_TRUE(composition.gaze->offsets[0].by_pitch);
    EXPECT_EQ(manifest.graph(role::kStitch).tensor("stitched_keypoints"), "c");
    EXPECT_TRUE(manifest.crop.mask.linear);
    EXPECT_EQ(manifest.crop.framing->shift_y, -0.125);
}

class BadExtendedManifest : public testing::TestWithParam<Change> {};

TEST_P(BadExtendedManifest, IsRefusedWithThePath) {
    const Change& change = GetParam();
    const json document = changed(extended(), change);
    EXPECT_THAT(error_of([&] { (void)parse(document); }), HasSubstr(change.message));
}

INSTANTIATE_TEST_SUITE_P(
    Motion, BadExtendedManifest,
    testing::Values(
        Change{"/motion/layout/1/bins/step_deg", "0", "layout[1].bins.step_deg: found 0"},
        Change{"/motion/layout/1/bins/steps", "1", "layout[1].bins.steps: unknown"},
        Change{"/motion/layout/1/bins", nullptr, "layout[1].size: found 5"},
        Change{"/motion/layout/1/clip", "[-1, 1]", "layout[1].clip"},
        Change{"/motion/layout/0/bins", R"({"step_deg": 1, "offset_deg": 0})", "layout[0].bins"},
        Change{"/motion/layout/1/stored_offset", "1", "layout[1].stored_offset"},
        Change{"/motion/layout/0/axes", R"("xy")", "layout[0].axes"},
        Change{"/motion/layout/4/axes", R"("yz")", "layout[4].axes: found \"yz\""},
        Change{"/motion/conditions/1/default_labels", "[]", "conditions[1].default_labels"},
        Change{"/motion/conditions/1/default_labels", R"(["bored"])", "default_labels[0]"},
        Change{"/motion/conditions/1/softmax_logit", "-1", "softmax_logit: found -1"},
        Change{"/motion/conditions/2/softmax_logit", "1", "conditions[2].softmax_logit"},
        Change{"/motion/conditions/4/size", "143", "conditions[4].size: found 143"},
        Change{"/motion/fusion", R"("later")", "motion.fusion: found \"later\""},
        Change{"/motion/fusion", nullptr, "motion.overlap_frames: found 70"},
        Change{"/motion/overlap_frames", "80", "motion.overlap_frames: found 80"},
        Change{"/motion/smooth_windows", "1", "motion.smooth_windows: found 1"},
        Change{"/motion/last_window", R"("x")", "motion.last_window"},
        Change{"/motion/initial_frame", R"("x")", "motion.initial_frame"},
        Change{"/motion/clip/high", nullptr, "motion.clip.high: missing"},
        Change{"/motion/reset/interval_windows", "-1", "motion.reset.interval_windows"},
        Change{"/motion/reset/kept_dims", "[19, 0]", "motion.reset.kept_dims"},
        Change{"/motion/reset/kept_dims", "[0, 200]", "motion.reset.kept_dims"},
        Change{"/motion/source_smoothing_frames", "0", "motion.source_smoothing_frames"},
        Change{"/motion/diffusion/default_eta", "1.5", "motion.diffusion.default_eta"},
        Change{"/motion/diffusion/stochastic/eta", "0", "motion.diffusion.stochastic.eta"},
        Change{"/motion/diffusion/stochastic/steps", "1001", "motion.diffusion.stochastic.steps"}));

INSTANTIATE_TEST_SUITE_P(
    Composition, BadExtendedManifest,
    testing::Values(
        Change{"/motion/composition/mode", "1", "motion.composition.mode: unknown"},
        Change{"/motion/composition/relative", nullptr, "motion.composition.relative: missing"},
        Change{"/motion/composition/driven_spans/image", R"(["mouth"])",
               "driven_spans.image[0]: found \"mouth\""},
        Change{"/motion/composition/driven_spans/video", R"({"expression": "all"})",
               "driven_spans.video.expression"},
        Change{"/motion/composition/driven_keypoints", R"("nose")", "driven_keypoints"},
        Change{"/motion/composition/eye_keypoints", nullptr, "composition.blink.offsets"},
        Change{"/motion/composition/drive_eyes/image", R"("yes")", "drive_eyes.image"},
        Change{"/motion/composition/blink/gap_frames", "-2", "blink.gap_frames: found -2"},
        Change{"/motion/composition/blink/random_gap_frames", "[9, 8]", "random_gap_frames"},
        Change{"/motion/composition/gaze/offsets/0/keypoint", "48", "gaze.offsets[0].keypoint"},
        Change{"/motion/composition/gaze/offsets/0/axis", R"("w")", "gaze.offsets[0].axis"},
        Change{"/motion/composition/gaze/offsets/0/by", R"("roll")", "gaze.offsets[0].by"},
        Change{"/motion/composition/fade_spans", R"(["x"])", "fade_spans[0]"},
        Change{"/graphs/stitch", nullptr, "graphs.stitch: missing"},
        Change{"/graphs/stitch/bindings/stitched_keypoints", nullptr,
               "graphs.stitch.bindings.stitched_keypoints: missing"},
        Change{"/crop/mask/profile", R"("round")", "crop.mask.profile: found \"round\""},
        Change{"/crop/framing/scale", "0", "crop.framing.scale: found 0"},
        Change{"/crop/framing/shift_x", nullptr, "crop.framing.shift_x: missing"}));

TEST(ExtendedManifest, RandomEditsGiveAManifestOrAnError) {
    std::mt19937 random(11);
    const std::string text = extended().dump();
    for (int i = 0; i < 400; ++i) {
        const std::string changed = i % 2 == 0 ? testing_support::mutate(text, random)
                                               : testing_support::mutate_numbers(text, random);
        try {
            (void)parse_manifest(changed, "x");
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::bad_pack) << error.what();
        }
    }
}

}  // namespace
}  // namespace newscaster::pack
