#include <charconv>

#include "pack/manifest_sections.h"

namespace newscaster::pack {

namespace {

constexpr double kMaxMotionValue = 1e6;
constexpr int64_t kMaxTimesteps = 1'000'000;

constexpr std::array<std::pair<std::string_view, SpanKind>, 7> kSpanKinds{
    {{"scale", SpanKind::scale},
     {"pitch_deg", SpanKind::pitch_deg},
     {"yaw_deg", SpanKind::yaw_deg},
     {"roll_deg", SpanKind::roll_deg},
     {"translation", SpanKind::translation},
     {"blendshapes", SpanKind::blendshapes},
     {"expression", SpanKind::expression}}};

constexpr std::array<std::pair<std::string_view, ConditionKind>, 4> kConditionKinds{
    {{"audio", ConditionKind::audio},
     {"emotion", ConditionKind::emotion},
     {"blink_value", ConditionKind::blink_value},
     {"blink_mask", ConditionKind::blink_mask}}};

void check_span_size(const JsonReader& reader, const MotionSpan& span) {
    int64_t wanted = span.size;
    switch (span.kind) {
        case SpanKind::scale:
        case SpanKind::pitch_deg:
        case SpanKind::yaw_deg:
        case SpanKind::roll_deg:
            wanted = 1;
            break;
        case SpanKind::translation:
            wanted = 3;
            break;
        case SpanKind::blendshapes:
            wanted = static_cast<int64_t>(span.channels.size());
            break;
        case SpanKind::expression:
            break;  // checked once the keypoint count is known
    }
    if (span.size != wanted) {
        reader.at("size").fail(fmt::format("{} for this kind of span", wanted));
    }
}

MotionSpan parse_span(const JsonReader& reader) {
    reader.expect_keys({"name", "kind", "size", "neutral", "clip", "channels"});
    MotionSpan span;
    span.name = reader.at("name").text();
    span.kind = one_of(reader.at("kind"), kSpanKinds);
    span.size = reader.at("size").integer(1, kMaxExtent);
    span.neutral = reader.at("neutral").number(-kMaxMotionValue, kMaxMotionValue);
    if (span.kind == SpanKind::blendshapes) {
        span.channels = unique_texts(reader.at("channels"));
    } else if (reader.has("channels")) {
        reader.at("channels").fail("no channels, only a blendshapes span has them");
    }
    check_span_size(reader, span);
    if (reader.has("clip")) {
        const JsonReader clip = reader.at("clip");
        if (clip.array_size() != 2) clip.fail("[low, high]");
        span.low = clip.at(size_t{0}).number(-kMaxMotionValue, kMaxMotionValue);
        span.high = clip.at(1).number(-kMaxMotionValue, kMaxMotionValue);
        span.clipped = true;
        if (span.low >= span.high) clip.fail("[low, high] with low < high");
        if (span.neutral < span.low || span.neutral > span.high) {
            reader.at("neutral").fail("a value inside the clip range");
        }
    }
    return span;
}

void parse_layout(const JsonReader& reader, MotionSpec& motion) {
    std::set<std::string> names;
    for (size_t i = 0; i < reader.array_size(); ++i) {
        MotionSpan span = parse_span(reader.at(i));
        if (!names.insert(span.name).second) {
            reader.at(i).at("name").fail("a span name not used before");
        }
        if (motion.find(span.kind) != nullptr) {
            reader.at(i).at("kind").fail("each kind of span at most once");
        }
        if (!motion.layout.empty()) {
            span.offset = motion.layout.back().offset + motion.layout.back().size;
        }
        motion.layout.push_back(std::move(span));
    }
    if (motion.layout.empty()) reader.fail("one span or more");
    const int64_t total = motion.layout.back().offset + motion.layout.back().size;
    if (total != motion.dims) {
        reader.fail(
            fmt::format("spans that add up to motion.dims = {}, not to {}", motion.dims, total));
    }
}

ConditionSpan parse_condition(const JsonReader& reader, const AudioSpec& audio) {
    reader.expect_keys({"kind", "size", "labels", "default_label"});
    ConditionSpan span;
    span.kind = one_of(reader.at("kind"), kConditionKinds);
    int64_t wanted = span.kind == ConditionKind::audio ? audio.feature_dims : 1;
    if (span.kind == ConditionKind::emotion) {
        span.labels = unique_texts(reader.at("labels"));
        span.default_label = reader.at("default_label").text();
        if (std::find(span.labels.begin(), span.labels.end(), span.default_label) ==
            span.labels.end()) {
            reader.at("default_label")
                .fail(fmt::format("one of the labels: {}", fmt::join(span.labels, ", ")));
        }
        wanted = static_cast<int64_t>(span.labels.size());
    } else {
        for (const auto* key : {"labels", "default_label"}) {
            if (reader.has(key)) reader.at(key).fail("no labels, only an emotion span has them");
        }
    }
    const JsonReader size = reader.at("size");
    span.size = size.integer(1, kMaxExtent);
    if (span.size != wanted) size.fail(fmt::format("{} for this condition", wanted));
    return span;
}

void parse_conditions(const JsonReader& reader, const AudioSpec& audio, MotionSpec& motion) {
    for (size_t i = 0; i < reader.array_size(); ++i) {
        ConditionSpan span = parse_condition(reader.at(i), audio);
        if (motion.find(span.kind) != nullptr) {
            reader.at(i).at("kind").fail("each kind of condition at most once");
        }
        span.offset = motion.condition_dims;
        motion.condition_dims += span.size;
        motion.conditions.push_back(std::move(span));
    }
    if (motion.find(ConditionKind::audio) == nullptr) reader.fail("a condition of kind audio");
}

void parse_smoothing(const JsonReader& reader, MotionSpec& motion) {
    for (size_t i = 0; i < reader.array_size(); ++i) {
        const JsonReader item = reader.at(i);
        item.expect_keys({"offset", "size", "frames"});
        SmoothingSpec smoothing;
        smoothing.offset = item.at("offset").integer(0, motion.dims - 1);
        smoothing.size = item.at("size").integer(1, motion.dims - smoothing.offset);
        smoothing.frames = item.at("frames").integer(1, 99);
        if (smoothing.frames % 2 == 0) item.at("frames").fail("an odd number of frames");
        motion.smoothing.push_back(smoothing);
    }
}

void parse_step_table(const JsonReader& tables, const std::string& key, DiffusionSpec& diffusion) {
    const JsonReader table = tables.at(key);
    const char* end = key.data() + key.size();
    int64_t steps = 0;
    const auto parsed = std::from_chars(key.data(), end, steps);
    if (parsed.ec != std::errc() || parsed.ptr != end || steps < 1 ||
        std::to_string(steps) != key) {
        table.fail("a key that is a number of steps from 1 up");
    }
    auto timesteps = table.integers(1, diffusion.timesteps - 1);
    if (static_cast<int64_t>(timesteps.size()) != steps) {
        table.fail(fmt::format("{} timesteps, as the key says", steps));
    }
    if (std::adjacent_find(timesteps.begin(), timesteps.end(), std::less_equal<>()) !=
        timesteps.end()) {
        table.fail("timesteps from high to low, each once");
    }
    diffusion.step_tables.emplace(steps, std::move(timesteps));
}

DiffusionSpec parse_diffusion(const JsonReader& reader) {
    reader.expect_keys(
        {"timesteps", "schedule", "cosine_s", "default_steps", "default_seed", "step_tables"});
    DiffusionSpec diffusion;
    diffusion.timesteps = reader.at("timesteps").integer(2, kMaxTimesteps);
    if (reader.at("schedule").text() != "cosine") reader.at("schedule").fail("\"cosine\"");
    diffusion.cosine_s = reader.at("cosine_s").number(0.0, 1.0);
    diffusion.default_steps = reader.at("default_steps").integer(1, diffusion.timesteps);
    diffusion.default_seed = static_cast<uint64_t>(reader.at("default_seed").integer(0, INT64_MAX));
    const JsonReader tables = reader.at("step_tables");
    for (const auto& key : tables.keys()) parse_step_table(tables, key, diffusion);
    return diffusion;
}

}  // namespace

MotionSpec parse_motion(const JsonReader& reader, const AudioSpec& audio) {
    reader.expect_keys({"dims", "window_frames", "overlap_frames", "layout", "conditions",
                        "smoothing", "normalisation", "diffusion"});
    constexpr int64_t kMaxWindow = 100'000;
    MotionSpec motion;
    motion.dims = reader.at("dims").integer(1, kMaxExtent);
    motion.window_frames = reader.at("window_frames").integer(2, kMaxWindow);
    const JsonReader overlap = reader.at("overlap_frames");
    motion.overlap_frames = overlap.integer(0, kMaxWindow);
    // A frame is fused from two windows at most.
    if (2 * motion.overlap_frames > motion.window_frames) {
        overlap.fail(fmt::format("at most half of window_frames = {}", motion.window_frames));
    }
    parse_layout(reader.at("layout"), motion);
    parse_conditions(reader.at("conditions"), audio, motion);
    parse_smoothing(reader.at("smoothing"), motion);
    const JsonReader normalisation = reader.at("normalisation");
    normalisation.expect_keys({"mean", "std"});
    motion.mean_tensor = normalisation.at("mean").text();
    motion.std_tensor = normalisation.at("std").text();
    motion.diffusion = parse_diffusion(reader.at("diffusion"));
    return motion;
}

}  // namespace newscaster::pack
