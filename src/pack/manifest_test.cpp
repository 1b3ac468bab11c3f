#include "pack/manifest.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "core/file.h"
#include "pack/test_support.h"

namespace newscaster::pack {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing_support::Change;
using testing_support::changed;
using testing_support::error_of;
using testing_support::source_path;

json studio() {
    return json::parse(read_text(source_path("packs/studio/pack.json")));
}

Manifest parse(const json& document) {
    return parse_manifest(document.dump(), "x/pack.json");
}

TEST(Manifest, ReadsTheDefaultPack) {
    const Manifest manifest = parse(studio());
    EXPECT_EQ(manifest.name, "studio");
    EXPECT_EQ(manifest.frame_rate, (Rational{25, 1}));
    EXPECT_EQ(manifest.audio.window_samples(), 15360);
    EXPECT_EQ(manifest.audio.phones.size(), 40U);
    EXPECT_EQ(manifest.audio.phones.front(), "sil");
    EXPECT_EQ(manifest.motion.condition_dims, 90);
    EXPECT_EQ(manifest.motion.diffusion.step_tables.at(4),
              (std::vector<int64_t>{999, 930, 820, 550}));
    EXPECT_EQ(manifest.motion.diffusion.default_seed, 42U);
    EXPECT_EQ(manifest.graph(role::kDecoder).tensor("image"), "out");
    EXPECT_EQ(manifest.crop.mask.feather_px, 40.0);
    EXPECT_EQ(manifest.keypoints.groups.at("pupils"), (std::vector<int64_t>{45, 46}));
}

TEST(Manifest, DerivesOffsetsFromSizes) {
    const Manifest manifest = parse(studio());
    const auto* shapes = manifest.motion.find(SpanKind::blendshapes);
    ASSERT_NE(shapes, nullptr);
    EXPECT_EQ(shapes->offset, 7);
    EXPECT_EQ(shapes->size, 52);
    EXPECT_TRUE(shapes->clipped);
    EXPECT_EQ(shapes->channels.front(), "eyeBlinkLeft");
    EXPECT_EQ(manifest.motion.find(SpanKind::expression), nullptr);
    EXPECT_EQ(manifest.motion.find(ConditionKind::emotion)->offset, 80);
    EXPECT_EQ(manifest.motion.find(ConditionKind::blink_mask)->offset, 89);
}

TEST(Manifest, AbsentRolesAndWordsAreNamed) {
    const Manifest manifest = parse(studio());
    EXPECT_THAT(error_of([&] { (void)manifest.graph("stitch"); }), HasSubstr("'stitch'"));
    EXPECT_THAT(error_of([&] { (void)manifest.graph(role::kWarp).tensor("image"); }),
                HasSubstr("warp.onnx: no tensor is bound to 'image'"));
}

TEST(Manifest, OtherSchemaVersionIsOneClearLine) {
    json document = studio();
    document["schema_version"] = 2;
    document["a_key_of_the_future"] = true;
    EXPECT_EQ(error_of([&] { (void)parse(document); }),
              "x/pack.json: schema_version: found 2, wanted 1, the schema version this build "
              "supports");
}

class BadManifest : public testing::TestWithParam<Change> {};

TEST_P(BadManifest, IsRefusedWithThePath) {
    const Change& change = GetParam();
    const json document = changed(studio(), change);
    const std::string message = error_of([&] { (void)parse(document); });
    EXPECT_THAT(message, testing::StartsWith("x/pack.json: "));
    EXPECT_THAT(message, HasSubstr(change.message));
}

INSTANTIATE_TEST_SUITE_P(
    Top, BadManifest,
    testing::Values(Change{"/format", R"("other")", "format: found \"other\""},
                    Change{"/format", nullptr, "format: missing"},
                    Change{"/schema_version", R"("1")", "schema_version: found \"1\""},
                    Change{"/schema_version", nullptr, "schema_version: missing"},
                    Change{"/name", R"("")", "name: found"},
                    Change{"/licence", R"("CC0")", "licence: unknown"},
                    Change{"/frame_rate", R"("25/0")", "frame_rate: found"},
                    Change{"/frame_rate", R"("24/1")", "audio.samples_per_frame: found 640"},
                    Change{"/constants/file", R"("../x")", "constants.file: found"},
                    Change{"/constants/file", R"("/etc/passwd")", "constants.file: found"},
                    Change{"/constants/file", R"("a/../../b")", "constants.file: found"},
                    Change{"/constants/file", R"("a\\b")", "constants.file: found"},
                    Change{"/constants/file", R"("./a")", "constants.file: found"},
                    Change{"/constants/file", R"("a/")", "constants.file: found"},
                    Change{"/constants/sha256", R"("abc")", "constants.sha256: found"},
                    Change{"/constants/size", "1", "constants.size: unknown"}));

INSTANTIATE_TEST_SUITE_P(
    Audio, BadManifest,
    testing::Values(
        Change{"/audio/sample_rate_hz", "0", "audio.sample_rate_hz: found 0"},
        Change{"/audio/sample_rate_hz", "22050", "audio.samples_per_frame: found 640"},
        Change{"/audio/samples_per_frame", "641", "audio.samples_per_frame: found 641"},
        Change{"/audio/chunk/present_frames", "0", "audio.chunk.present_frames: found 0"},
        Change{"/audio/chunk/past_frames", "-1", "audio.chunk.past_frames: found -1"},
        Change{"/audio/chunk/past_frames", "14", "graphs.audio_encoder.bindings.audio"},
        Change{"/audio/chunk/extra_samples", nullptr, "audio.chunk.extra_samples: missing"},
        Change{"/audio/chunk/lead_samples", "1", "audio.chunk.lead_samples: found 1"},
        Change{"/audio/feature_dims", "81", "motion.conditions[0].size: found 80"},
        Change{"/audio/rows_per_frame", "2", "graphs.audio_encoder.outputs.feat.shape"},
        Change{"/audio/first_row", "1", "graphs.audio_encoder.outputs.feat.shape"},
        Change{"/audio/first_row", "0.5", "audio.first_row: found 0.5"},
        Change{"/audio/phones", R"(["sil", "p"])", "graphs.audio_encoder.bindings.phones"},
        Change{"/audio/phones", nullptr, "graphs.audio_encoder.bindings.phones"},
        Change{"/audio/phones/1", R"("sil")", "audio.phones[1]: found \"sil\""},
        Change{"/graphs/audio_encoder/bindings/phones", nullptr, "bindings.phones: missing"}));

INSTANTIATE_TEST_SUITE_P(
    Motion, BadManifest,
    testing::Values(
        Change{"/motion/dims", "60", "motion.layout: found"},
        Change{"/motion/overlap_frames", "41", "motion.overlap_frames: found 41"},
        Change{"/motion/window_frames", "81", "graphs.motion_generator.bindings.condition"},
        Change{"/motion/layout", "[]", "motion.layout: found []"},
        Change{"/motion/layout/0/size", "2", "motion.layout[0].size: found 2"},
        Change{"/motion/layout/1/kind", R"("pitch")", "motion.layout[1].kind: found \"pitch\""},
        Change{"/motion/layout/2/kind", R"("pitch_deg")", "motion.layout[2].kind"},
        Change{"/motion/layout/2/name", R"("pitch")", "motion.layout[2].name"},
        Change{"/motion/layout/3/channels", R"(["a"])", "motion.layout[3].channels"},
        Change{"/motion/layout/4/size", "4", "motion.layout[4].size: found 4"},
        Change{"/motion/layout/5/size", "51", "motion.layout[5].size: found 51"},
        Change{"/motion/layout/5/channels/1", R"("eyeBlinkLeft")", "motion.layout[5].channels[1]"},
        Change{"/motion/layout/5/channels", nullptr, "motion.layout[5].channels: missing"},
        Change{"/motion/layout/5/clip", "[1, 0]", "motion.layout[5].clip"},
        Change{"/motion/layout/5/clip", "[0.5]", "motion.layout[5].clip"},
        Change{"/motion/layout/5/clip", "[0.5, 1]", "motion.layout[5].neutral"},
        Change{"/motion/conditions/0/size", "79", "motion.conditions[0].size: found 79"},
        Change{"/motion/conditions/1/default_label", R"("bored")", "motion.conditions[1].default"},
        Change{"/motion/conditions/1/labels/1", R"("angry")", "motion.conditions[1].labels[1]"},
        Change{"/motion/conditions/1/size", "7", "motion.conditions[1].size: found 7"},
        Change{"/motion/conditions/2/labels", R"(["a"])", "motion.conditions[2].labels"},
        Change{"/motion/conditions/3/kind", R"("blink_value")", "motion.conditions[3].kind"},
        Change{"/motion/conditions", "[]", "motion.conditions: found []"},
        Change{"/motion/smoothing", R"([{"offset": 0, "size": 60, "frames": 3}])",
               "motion.smoothing[0].size: found 60"},
        Change{"/motion/smoothing", R"([{"offset": 0, "size": 7, "frames": 4}])",
               "motion.smoothing[0].frames: found 4"},
        Change{"/motion/normalisation/std", R"("")", "motion.normalisation.std"}));

INSTANTIATE_TEST_SUITE_P(
    Diffusion, BadManifest,
    testing::Values(
        Change{"/motion/diffusion/schedule", R"("linear")", "motion.diffusion.schedule"},
        Change{"/motion/diffusion/default_steps", "0", "motion.diffusion.default_steps"},
        Change{"/motion/diffusion/default_seed", "-1", "motion.diffusion.default_seed"},
        Change{"/motion/diffusion/cosine_s", "2", "motion.diffusion.cosine_s"},
        Change{"/motion/diffusion/timesteps", "900", "motion.diffusion.step_tables.2[0]"},
        Change{"/motion/diffusion/step_tables/2", "[820, 999]", "motion.diffusion.step_tables.2"},
        Change{"/motion/diffusion/step_tables/2", "[820, 820]", "motion.diffusion.step_tables.2"},
        Change{"/motion/diffusion/step_tables/2", "[999]", "motion.diffusion.step_tables.2"},
        Change{"/motion/diffusion/step_tables/2", "[999, 0]", "step_tables.2[1]: found 0"},
        Change{"/motion/diffusion/step_tables/02", "[999, 820]", "step_tables.02"},
        Change{"/motion/diffusion/step_tables/x", "[]", "step_tables.x"}));

INSTANTIATE_TEST_SUITE_P(
    KeypointsAndCrop, BadManifest,
    testing::Values(
        Change{"/keypoints/count", "47", "keypoints.groups.tongue[0]: found 47"},
        Change{"/keypoints/count", "49", "bindings"},
        Change{"/keypoints/expression_basis", nullptr, "keypoints.expression_basis: missing"},
        Change{"/keypoints/groups/lips", "[]", "keypoints.groups.lips: found []"},
        Change{"/keypoints/groups/lips", "[48]", "keypoints.groups.lips[0]: found 48"},
        Change{"/keypoints/groups/lips", "[4, 4]", "keypoints.groups.lips: found [4,4]"},
        Change{"/crop/size_px", "256", "graphs.decoder.bindings.image"},
        Change{"/crop/mask/inset_px", "-1", "crop.mask.inset_px: found -1"},
        Change{"/crop/mask/feather_px", "253", "crop.mask: found"}));

INSTANTIATE_TEST_SUITE_P(
    Graphs, BadManifest,
    testing::Values(
        Change{"/graphs/warp", nullptr, "graphs.warp: missing"},
        Change{"/graphs/decoder", nullptr, "graphs.decoder: missing"},
        Change{"/graphs/face", "{}", "graphs.face: found {}"},
        Change{"/graphs/warp/precisions", R"(["bf16"])", "graphs.warp.precisions"},
        Change{"/graphs/warp/precisions/1", R"("f12")", "graphs.warp.precisions[1]"},
        Change{"/graphs/warp/precisions/1", R"("f32")", "graphs.warp.precisions[1]"},
        Change{"/graphs/warp/variants/f32", R"({"file": "a", "sha256": "b"})", "variants.f32"},
        Change{"/graphs/warp/variants/int8", R"({"file": "/a", "sha256": "b"})",
               "graphs.warp.variants.int8.file"},
        Change{"/graphs/warp/inputs", "{}", "graphs.warp.inputs: found {}"},
        Change{"/graphs/warp/inputs/f64/dtype", R"("f31")", "graphs.warp.inputs.f64.dtype"},
        Change{"/graphs/warp/inputs/f64/shape", "[1, 0]", "graphs.warp.inputs.f64.shape[1]"},
        Change{"/graphs/warp/inputs/flow", R"({"dtype": "f32", "shape": [1]})",
               "graphs.warp.outputs.flow"},
        Change{"/graphs/warp/bindings/driving_keypoints", nullptr,
               "graphs.warp.bindings.driving_keypoints: missing"},
        Change{"/graphs/warp/bindings/driving_keypoints", R"("nothing")",
               "graphs.warp.bindings.driving_keypoints: found \"nothing\""},
        Change{"/graphs/warp/bindings/driving_keypoints", R"("kp_source")", "graphs.warp.bindings"},
        Change{"/graphs/warp/bindings/driving_keypoints", R"("f64")",
               "f32 [1,48,3], but f64 is f32 [1,64,64,64]"},
        Change{"/graphs/warp/bindings/image", R"("flow")", "no such word for a warp graph"},
        Change{"/graphs/decoder/inputs/flow/shape", "[1, 2, 64, 64]",
               "graphs.decoder.inputs.flow: found"},
        Change{"/graphs/decoder/outputs/out/dtype", R"("f16")", "graphs.decoder.bindings.image"},
        Change{"/graphs/motion_generator/inputs/time_cond/dtype", R"("f32")",
               "graphs.motion_generator.bindings.timestep"},
        Change{
            "/graphs/motion_generator/bindings/sample", R"("x")",
            "graphs.motion_generator.bindings.sample: found \"x\", wanted the name of an output"},
        Change{"/graphs/warp/sha256", R"("ABCD")", "graphs.warp.sha256"}));

TEST(AvatarKey, HashesTheDocumentedText) {
    const Manifest manifest = parse(studio());
    const std::string text =
        "newscaster-avatar-key 1\nappearance_extractor " +
        manifest.graph(role::kAppearanceExtractor).model.sha256 + "\nmotion_extractor " +
        manifest.graph(role::kMotionExtractor).model.sha256 + "\nwarp " +
        manifest.graph(role::kWarp).model.sha256 + "\ndecoder " +
        manifest.graph(role::kDecoder).model.sha256 + "\ncrop 512\nkeypoints 48\n";
    EXPECT_EQ(avatar_key(manifest), sha256_hex(text));
}

TEST(AvatarKey, FollowsOnlyWhatCachedTensorsDependOn) {
    const std::string key = avatar_key(parse(studio()));
    json document = studio();
    document["graphs"]["motion_generator"]["sha256"] = std::string(64, 'a');
    document["crop"]["mask"]["inset_px"] = 9;
    EXPECT_EQ(avatar_key(parse(document)), key);
    document["graphs"]["decoder"]["sha256"] = std::string(64, 'a');
    EXPECT_NE(avatar_key(parse(document)), key);
    document = studio();
    document["graphs"].erase("appearance_extractor");
    EXPECT_NE(avatar_key(parse(document)), key);
}

}  // namespace
}  // namespace newscaster::pack
