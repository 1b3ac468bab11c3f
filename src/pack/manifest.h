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
    // timestep, noise, sample. stitch: source_keypoints, driving_keypoints, stitched_keypoints.
    // warp/decoder: source_keypoints, driving_keypoints, source_image, image. Every other input is
    // an avatar tensor or an earlier graph's output of the same name.
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
    int64_t extra_samples = 0;   // samples beyond these frames that the graph also reads
    int64_t lead_samples = 0;    // of the extra ones, those before the past frames
    int64_t feature_dims = 0;
    int64_t rows_per_frame = 1;  // rows the graph yields per video frame; averaged
    int64_t first_row = 0;       // row of the output where the present frames start
    // What the columns of the encoder's `phones` output stand for; empty: it has none.
    std::vector<std::string> phones{};

    [[nodiscard]] int64_t window_samples() const {
        return (past_frames + present_frames + future_frames) * samples_per_frame + extra_samples;
    }
};

enum class SpanKind { scale, pitch_deg, yaw_deg, roll_deg, translation, blendshapes, expression };

// A pose angle stored as `size` logits: degrees = step_deg * sum(softmax(logits) * index) +
// offset_deg.
struct PoseBins {
    double step_deg = 0.0;
    double offset_deg = 0.0;
};

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
    std::vector<std::string> channels{};  // blendshapes: one name each (ARKit)
    std::optional<PoseBins> bins{};       // pose angles; none: size 1, degrees
    double stored_offset = 0.0;           // scale: value = stored + this
    int64_t axes = 3;                     // translation: how many of x, y, z move the keypoints
};

enum class ConditionKind {
    audio,
    emotion,
    blink_value,
    blink_mask,
    eye_open,         // opening of both eyes, per source frame of the avatar
    eye_ball,         // movement of both irises, per source frame of the avatar
    source_keypoints  // canonical keypoints of the avatar's first source frame
};

// One stretch of the motion generator's condition row.
struct ConditionSpan {
    ConditionKind kind = ConditionKind::audio;
    int64_t offset = 0;  // derived
    int64_t size = 0;
    std::vector<std::string> labels;  // emotion
    std::string default_label;        // emotion
    // Emotion: labels mixed by default; just `default_label` unless the manifest says more.
    std::vector<std::string> default_labels{};
    // Emotion: the row is softmax(this at the chosen labels, 0 elsewhere); none: one-hot.
    std::optional<double> softmax_logit{};
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
    double default_eta = 0.0;  // 0: deterministic; 1: as much noise as the forward process
    std::optional<int64_t> stochastic_steps{};  // default steps when eta is above 0
    std::optional<double> stochastic_eta{};
};

// How overlapping windows are joined; docs/motion.md, "Windows".
enum class Fusion { offline, online };

// The generator's previous-frame input returns to the avatar's own motion every so many windows.
struct ResetSpec {
    int64_t interval_windows = 0;  // 0: never
    int64_t kept_begin = 0;        // dims [kept_begin, kept_end) keep their generated value
    int64_t kept_end = 0;
};

// Expression offset of one keypoint's axis per degree of gaze: `above` x d for d > 0, else `below`.
struct GazeOffset {
    int64_t keypoint = 0;
    int64_t axis = 0;  // 0 x, 1 y, 2 z
    bool by_pitch = false;
    double above = 0.0;
    double below = 0.0;
};

struct GazeSpec {
    double yaw_ratio = 0.0;
    double pitch_ratio = 0.0;
    std::vector<GazeOffset> offsets;
};

struct BlinkSpec {
    std::string offsets;      // constant [frames, 3 * keypoints], one blink; empty: none
    int64_t gap_frames = -1;  // -1: no blinks, 0: random gaps, n: gaps of n frames
    int64_t min_gap_frames = 0;
    int64_t max_gap_frames = 0;
};

// How generated motion is put on the source's; docs/motion.md, "Mixing with the source". A pack
// without it drives every span, and its composer adds the source's pose.
struct CompositionSpec {
    bool relative = false;  // to the first driving frame
    // Span name -> weight of the driving motion, for avatars of one frame and of several.
    std::map<std::string, double> driven_image;
    std::map<std::string, double> driven_video;
    std::string driven_keypoints;  // group whose expression is driven; empty: all keypoints
    std::string eye_keypoints;     // group driven while the eyes are; empty: none
    bool drive_eyes_image = true;
    bool drive_eyes_video = true;
    BlinkSpec blink;
    std::optional<GazeSpec> gaze;
    bool stitching = false;
    std::vector<std::string> fade_spans;
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
    std::string clip_low_tensor{};  // names of constants [dims]; empty: no clip
    std::string clip_high_tensor{};
    Fusion fusion = Fusion::offline;
    bool smooth_windows = false;         // filters run while windows are joined, too
    bool repeat_last_condition = false;  // how the last window is filled; else silence
    bool start_from_source = false;      // frame before the first window: source's, else neutral
    ResetSpec reset{};
    int64_t source_smoothing_frames = 1;
    std::optional<CompositionSpec> composition{};

    [[nodiscard]] const MotionSpan* find(SpanKind kind) const;
    [[nodiscard]] const ConditionSpan* find(ConditionKind kind) const;
};

struct KeypointSpec {
    int64_t count = 0;
    std::string
        expression_basis;  // constants tensor [channels, count, 3] for blendshapes, or empty
    std::map<std::string, std::vector<int64_t>> groups;  // "lips", "eyes", ...
};

// Soft paste-back mask in crop pixels: 0 within inset_px of the border, then a smoothstep or a line
// to 1 over feather_px.
struct MaskSpec {
    double inset_px = 0.0;
    double feather_px = 0.0;
    bool linear = false;
};

// How registration cuts the crop out of a picture; in crop sizes.
struct FramingSpec {
    double scale = 0.0;
    double shift_x = 0.0;
    double shift_y = 0.0;
    bool rotate = false;  // eyes level
};

struct CropSpec {
    int64_t size_px = 0;  // square crop the decoder draws
    MaskSpec mask;
    std::optional<FramingSpec> framing{};
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
