#include "pack/manifest.h"

#include "core/file.h"
#include "pack/json_parts.h"
#include "pack/manifest_sections.h"

namespace newscaster::pack {

namespace {

constexpr std::string_view kFormat = "newscaster-pack";
constexpr int64_t kMaxSampleRate = 384'000;
constexpr int64_t kMinCropPx = 16;
constexpr int64_t kMaxCropPx = 8192;

// Part of what avatar_key() hashes: raise it when that text changes.
constexpr std::string_view kAvatarKeyHeader = "newscaster-avatar-key 1\n";

AudioSpec parse_audio(const JsonReader& reader, Rational frame_rate) {
    reader.expect_keys({"sample_rate_hz", "samples_per_frame", "chunk", "feature_dims",
                        "rows_per_frame", "first_row", "phones"});
    AudioSpec audio;
    audio.sample_rate_hz = reader.at("sample_rate_hz").integer(1000, kMaxSampleRate);
    const JsonReader hop = reader.at("samples_per_frame");
    audio.samples_per_frame = hop.integer(1, kMaxSampleRate);
    if (audio.samples_per_frame * frame_rate.num != audio.sample_rate_hz * frame_rate.den) {
        hop.fail(fmt::format("sample_rate_hz / frame_rate = {} / ({}/{})", audio.sample_rate_hz,
                             frame_rate.num, frame_rate.den));
    }
    const JsonReader chunk = reader.at("chunk");
    chunk.expect_keys(
        {"past_frames", "present_frames", "future_frames", "extra_samples", "lead_samples"});
    constexpr int64_t kMaxFrames = 10'000;
    audio.past_frames = chunk.at("past_frames").integer(0, kMaxFrames);
    audio.present_frames = chunk.at("present_frames").integer(1, kMaxFrames);
    audio.future_frames = chunk.at("future_frames").integer(0, kMaxFrames);
    audio.extra_samples = chunk.at("extra_samples").integer(0, kMaxExtent);
    if (chunk.has("lead_samples")) {
        audio.lead_samples = chunk.at("lead_samples").integer(0, audio.extra_samples);
    }
    audio.feature_dims = reader.at("feature_dims").integer(1, kMaxExtent);
    audio.rows_per_frame = reader.at("rows_per_frame").integer(1, 1000);
    audio.first_row = reader.at("first_row").integer(0, kMaxExtent);
    if (reader.has("phones")) audio.phones = unique_texts(reader.at("phones"));
    return audio;
}

KeypointSpec parse_keypoints(const JsonReader& reader, const MotionSpec& motion) {
    reader.expect_keys({"count", "expression_basis", "groups"});
    KeypointSpec keypoints;
    keypoints.count = reader.at("count").integer(1, 10'000);
    if (motion.find(SpanKind::blendshapes) != nullptr) {
        keypoints.expression_basis = reader.at("expression_basis").text();
    } else if (reader.has("expression_basis")) {
        reader.at("expression_basis").fail("no basis, because the layout has no blendshapes span");
    }
    const JsonReader groups = reader.at("groups");
    for (const auto& name : groups.keys()) {
        const JsonReader group = groups.at(name);
        auto indices = group.integers(0, keypoints.count - 1);
        const std::set<int64_t> unique(indices.begin(), indices.end());
        if (indices.empty() || unique.size() != indices.size()) {
            group.fail("one or more keypoint indices, each once");
        }
        keypoints.groups.emplace(name, std::move(indices));
    }
    return keypoints;
}

FramingSpec parse_framing(const JsonReader& reader) {
    reader.expect_keys({"scale", "shift_x", "shift_y", "rotate"});
    constexpr double kMaxScale = 100.0;
    FramingSpec framing;
    framing.scale = reader.at("scale").number(0.1, kMaxScale);
    framing.shift_x = reader.at("shift_x").number(-1.0, 1.0);
    framing.shift_y = reader.at("shift_y").number(-1.0, 1.0);
    framing.rotate = reader.at("rotate").boolean();
    return framing;
}

CropSpec parse_crop(const JsonReader& reader) {
    reader.expect_keys({"size_px", "mask", "framing"});
    CropSpec crop;
    crop.size_px = reader.at("size_px").integer(kMinCropPx, kMaxCropPx);
    crop.mask = parse_mask(reader.at("mask"), crop.size_px);
    if (reader.has("framing")) crop.framing = parse_framing(reader.at("framing"));
    return crop;
}

// Spans that hold three numbers per keypoint must hold them for all.
template <typename Span, typename Kind>
void check_against_keypoints(const JsonReader& array, const std::vector<Span>& spans, Kind kind,
                             int64_t keypoints) {
    for (size_t i = 0; i < spans.size(); ++i) {
        if (spans[i].kind != kind) continue;
        const int64_t wanted = 3 * keypoints;
        if (spans[i].size != wanted) {
            array.at(i).at("size").fail(fmt::format("{}, three per keypoint", wanted));
        }
    }
}

}  // namespace

std::vector<std::string> unique_texts(const JsonReader& reader) {
    std::vector<std::string> texts(reader.array_size());
    std::set<std::string> seen;
    for (size_t i = 0; i < texts.size(); ++i) {
        texts[i] = reader.at(i).text();
        if (!seen.insert(texts[i]).second) reader.at(i).fail("a name not used before");
    }
    return texts;
}

const std::string& GraphSpec::tensor(const std::string& word) const {
    const auto found = bindings.find(word);
    if (found == bindings.end()) {
        throw Error(ErrorCode::bad_pack,
                    fmt::format("graph {}: no tensor is bound to '{}'", model.file, word));
    }
    return found->second;
}

const MotionSpan* MotionSpec::find(SpanKind kind) const {
    const auto found =
        std::find_if(layout.begin(), layout.end(), [&](const auto& s) { return s.kind == kind; });
    return found == layout.end() ? nullptr : &*found;
}

const ConditionSpan* MotionSpec::find(ConditionKind kind) const {
    const auto found = std::find_if(conditions.begin(), conditions.end(),
                                    [&](const auto& s) { return s.kind == kind; });
    return found == conditions.end() ? nullptr : &*found;
}

const GraphSpec& Manifest::graph(std::string_view role) const {
    const auto found = graphs.find(role);
    if (found == graphs.end()) {
        throw Error(ErrorCode::bad_pack,
                    fmt::format("pack {}: has no graph '{}', which this needs", name, role));
    }
    return found->second;
}

Manifest parse_manifest(std::string_view json_text, const std::string& origin) {
    const auto document = JsonReader::parse(json_text, origin, ErrorCode::bad_pack);
    const JsonReader root(document, origin, ErrorCode::bad_pack);
    check_format(root, kFormat, kSchemaVersion);
    root.expect_keys({"format", "schema_version", "name", "version", "title", "license",
                      "frame_rate", "audio", "motion", "keypoints", "crop", "constants", "graphs"});
    Manifest manifest;
    manifest.name = root.at("name").text();
    manifest.version = root.at("version").text();
    manifest.title = root.at("title").text();
    manifest.license = root.at("license").text();
    manifest.frame_rate = root.at("frame_rate").rational();
    manifest.audio = parse_audio(root.at("audio"), manifest.frame_rate);
    manifest.motion = parse_motion(root.at("motion"), manifest.audio);
    manifest.keypoints = parse_keypoints(root.at("keypoints"), manifest.motion);
    const JsonReader motion = root.at("motion");
    check_against_keypoints(motion.at("layout"), manifest.motion.layout, SpanKind::expression,
                            manifest.keypoints.count);
    check_against_keypoints(motion.at("conditions"), manifest.motion.conditions,
                            ConditionKind::source_keypoints, manifest.keypoints.count);
    if (motion.has("composition")) {
        manifest.motion.composition = parse_composition(motion.at("composition"), manifest);
    }
    manifest.crop = parse_crop(root.at("crop"));
    root.at("constants").expect_keys({"file", "sha256"});
    manifest.constants = parse_file(root.at("constants"));
    parse_graphs(root.at("graphs"), manifest);
    return manifest;
}

std::string avatar_key(const Manifest& manifest) {
    std::string text(kAvatarKeyHeader);
    for (const auto graph_role :
         {role::kAppearanceExtractor, role::kMotionExtractor, role::kWarp, role::kDecoder}) {
        const auto found = manifest.graphs.find(graph_role);
        const bool absent = found == manifest.graphs.end();
        text += fmt::format("{} {}\n", graph_role, absent ? "-" : found->second.model.sha256);
    }
    text += fmt::format("crop {}\nkeypoints {}\n", manifest.crop.size_px, manifest.keypoints.count);
    return sha256_hex(text);
}

}  // namespace newscaster::pack
