// pack.json, schema version 1, as C++ values. docs/pack-format.md is the reference for users.
//
// Every number the engine needs about a model is here; the C++ code has no model constant.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor.h"
#include "newscaster/types.h"

namespace newscaster::pack {

inline constexpr int kSchemaVersion = 1;

// Words of the format for device::Precision; listed here so that reading a manifest needs no
// provider.
inline constexpr std::array<std::string_view, 5> kPrecisionNames{"f32", "f16", "bf16", "int8",
                                                                 "fp8"};

// Graph roles. A pack has `warp` and `decoder`; others as its features need them.
namespace role {
inline constexpr std::string_view kAudioEncoder = "audio_encoder";
inline constexpr std::string_view kMotionGenerator = "motion_generator";
inline constexpr std::string_view kStitch = "stitch";
inline constexpr std::string_view kAppearanceExtractor = "appearance_extractor";
inline constexpr std::string_view kMotionExtractor = "motion_extractor";
inline constexpr std::string_view kWarp = "warp";
inline constexpr std::string_view kDecoder = "decoder";
}  // namespace role

struct TensorSpec {
    DType dtype = DType::f32;
    Shape shape;  // the shape the engine runs with; concrete
};

struct GraphFile {
    std::string file;    // relative to the pack folder, no "..", no absolute path
    std::string sha256;  // lower-case hex of the file
};

struct GraphSpec {
    GraphFile model;
    std::map<std::string, GraphFile> variants;  // by precision name, e.g. "int8"
    // Precisions the pack allows for this graph, by name; "f32" always.
    std::vector<std::string> precisions;
    std::map<std::string, TensorSpec> inputs;   // by ONNX tensor name
    std::map<std::string, TensorSpec> outputs;  // by ONNX tensor name
    // Engine's word -> ONNX tensor name, where the engine itself feeds or reads the tensor.
    // audio_encoder: audio, features. motion_generator: latent, previous_frame, condition,
    // timestep, noise, sample. warp/decoder: source_keypoints, driving_keypoints, image. Every
    // other input is an avatar tensor or an earlier graph's output of the same name.
    std::map<std::string, std::string> bindings;

    [[nodiscard]] const std::string& tensor(const std::string& word) const;  // throws bad_pack
};

// Streaming geometry of the audio encoder, in video frames.
struct AudioSpec {
    int64_t sample_rate_hz = 0;
    int64_t samples_per_frame = 0;
    int64_t past_frames = 0;     // context before the chunk
    int64_t present_frames = 0;  // frames a call yields
    int64_t future_frames = 0;   // look-ahead
    int64_t extra_samples = 0;   // samples past the future frames that the graph also reads
    int64_t feature_dims = 0;
    int64_t rows_per_frame = 1;  // rows the graph yields per video frame; averaged
    int64_t first_row = 0;       // row of the output where the present frames start

    [[nodiscard]] int64_t window_samples() const {
        return (past_frames + present_frames + future_frames) * samples_per_frame + extra_samples;
    }
};

enum class SpanKind { scale, pitch_deg, yaw_deg, roll_deg, translation, blendshapes, expression };

// One named stretch of the motion vector.
struct MotionSpan {
    std::string name;
    SpanKind kind = SpanKind::expression;
    int64_t offset = 0;  // derived: sum of earlier sizes
    int64_t size = 0;
    double neutral = 0.0;  // resting value
    double low = 0.0;      // clip range, when `clipped`
    double high = 0.0;
    bool clipped = false;
    std::vector<std::string> channels;  // blendshapes: one name each (ARKit)
};

enum class ConditionKind { audio, emotion, blink_value, blink_mask };

// One stretch of the motion generator's condition row.
struct ConditionSpan {
    ConditionKind kind = ConditionKind::audio;
    int64_t offset = 0;  // derived
    int64_t size = 0;
    std::vector<std::string> labels;  // emotion
    std::string default_label;        // emotion
};

// Box filter over `frames` (odd) of the dims [offset, offset+size).
struct SmoothingSpec {
    int64_t offset = 0;
    int64_t size = 0;
    int64_t frames = 1;
};

// Noise schedule and sampler (cosine schedule: Nichol & Dhariwal 2021, eq. 17).
struct DiffusionSpec {
    int64_t timesteps = 0;
    double cosine_s = 0.0;
    int64_t default_steps = 0;
    uint64_t default_seed = 0;
    // steps -> timesteps from high to low (all > 0); other counts: linspace(-1, timesteps-1, n+1).
    std::map<int64_t, std::vector<int64_t>> step_tables;
};

struct MotionSpec {
    int64_t dims = 0;
    int64_t window_frames = 0;
    int64_t overlap_frames = 0;
    std::vector<MotionSpan> layout;
    std::vector<ConditionSpan> conditions;
    int64_t condition_dims = 0;  // derived
    std::vector<SmoothingSpec> smoothing;
    DiffusionSpec diffusion;
    std::string mean_tensor;  // names in constants
    std::string std_tensor;

    [[nodiscard]] const MotionSpan* find(SpanKind kind) const;
    [[nodiscard]] const ConditionSpan* find(ConditionKind kind) const;
};

struct KeypointSpec {
    int64_t count = 0;
    std::string
        expression_basis;  // constants tensor [channels, count, 3] for blendshapes, or empty
    std::map<std::string, std::vector<int64_t>> groups;  // "lips", "eyes", ...
};

// Soft paste-back mask in crop pixels: 0 within inset_px of the border, smoothstep over feather_px.
struct MaskSpec {
    double inset_px = 0.0;
    double feather_px = 0.0;
};

struct CropSpec {
    int64_t size_px = 0;  // square crop the decoder draws
    MaskSpec mask;
};

struct Manifest {
    std::string name;
    std::string version;
    std::string title;
    std::string license;
    Rational frame_rate{25, 1};
    AudioSpec audio;
    MotionSpec motion;
    KeypointSpec keypoints;
    CropSpec crop;
    GraphFile constants;                                   // safetensors
    std::map<std::string, GraphSpec, std::less<>> graphs;  // by role

    [[nodiscard]] const GraphSpec& graph(std::string_view role) const;  // throws bad_pack
};

// Strict: unknown keys, wrong types, out-of-range values and inconsistent sizes throw
// Error(bad_pack) naming origin, path, value found and value wanted. Touches no file.
[[nodiscard]] Manifest parse_manifest(std::string_view json_text, const std::string& origin);

// Identity of what an avatar's cached tensors depend on: sha256 over the hashes of the extractor,
// warp and decoder graphs, the crop and the keypoint count. Avatars carry it.
[[nodiscard]] std::string avatar_key(const Manifest& manifest);

}  // namespace newscaster::pack
