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

constexpr std::array<std::pair<std::string_view, ConditionKind>, 7> kConditionKinds{
    {{"audio", ConditionKind::audio},
     {"emotion", ConditionKind::emotion},
     {"blink_value", ConditionKind::blink_value},
     {"blink_mask", ConditionKind::blink_mask},
     {"eye_open", ConditionKind::eye_open},
     {"eye_ball", ConditionKind::eye_ball},
     {"source_keypoints", ConditionKind::source_keypoints}}};

constexpr std::array<std::pair<std::string_view, int64_t>, 2> kTranslationAxes{
    {{"xy", 2}, {"xyz", 3}}};
constexpr std::array<std::pair<std::string_view, Fusion>, 2> kFusions{
    {{"offline", Fusion::offline}, {"online", Fusion::online}}};
constexpr std::array<std::pair<std::string_view, bool>, 2> kWindowFills{
    {{"silence", false}, {"repeat_last", true}}};
constexpr std::array<std::pair<std::string_view, bool>, 2> kInitialFrames{
    {{"neutral", false}, {"source", true}}};

// An optional key's value from a table of names; `otherwise` when the key is absent.
template <typename T, size_t N>
T optional_one_of(const JsonReader& reader, std::string_view key,
                  const std::array<std::pair<std::string_view, T>, N>& table, T otherwise) {
    return reader.has(key) ? one_of(reader.at(key), table) : otherwise;
}

bool is_pose(SpanKind kind) {
    return kind == SpanKind::pitch_deg || kind == SpanKind::yaw_deg || kind == SpanKind::roll_deg;
}

// Keys that one kind of span alone has.
void parse_span_details(const JsonReader& reader, MotionSpan& span) {
    const auto refuse_unless = [&](bool fits, const char* key, const char* what) {
        if (!fits && reader.has(key)) {
            reader.at(key).fail(fmt::format("no {}, only {} has it", key, what));
        }
    };
    refuse_unless(is_pose(span.kind), "bins", "a pose span");
    refuse_unless(span.kind == SpanKind::scale, "stored_offset", "a scale span");
    refuse_unless(span.kind == SpanKind::translation, "axes", "a translation span");
    if (reader.has("bins")) {
        const JsonReader bins = reader.at("bins");
        bins.expect_keys({"step_deg", "offset_deg"});
        constexpr double kFullTurnDeg = 360.0;
        span.bins = PoseBins{.step_deg = bins.at("step_deg").number(1e-6, kFullTurnDeg),
                             .offset_deg = bins.at("offset_deg").number(-1e6, 1e6)};
        if (reader.has("clip")) reader.at("clip").fail("no clip, because the span holds bins");
    }
    if (reader.has("stored_offset")) {
        span.stored_offset = reader.at("stored_offset").number(-kMaxMotionValue, kMaxMotionValue);
    }
    span.axes = optional_one_of(reader, "axes", kTranslationAxes, int64_t{3});
}

void check_span_size(const JsonReader& reader, const MotionSpan& span) {
    int64_t wanted = span.size;
    switch (span.kind) {
        case SpanKind::scale:
        case SpanKind::pitch_deg:
        case SpanKind::yaw_deg:
        case SpanKind::roll_deg:
            if (!span.bins) wanted = 1;
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
    reader.expect_keys(
        {"name", "kind", "size", "neutral", "clip", "channels", "bins", "stored_offset", "axes"});
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
    parse_span_details(reader, span);
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

void parse_emotion(const JsonReader& reader, ConditionSpan& span) {
    span.labels = unique_texts(reader.at("labels"));
    const auto check_label = [&](const JsonReader& item, const std::string& label) {
        if (std::find(span.labels.begin(), span.labels.end(), label) == span.labels.end()) {
            item.fail(fmt::format("one of the labels: {}", fmt::join(span.labels, ", ")));
        }
    };
    span.default_label = reader.at("default_label").text();
    check_label(reader.at("default_label"), span.default_label);
    span.default_labels = {span.default_label};
    if (reader.has("default_labels")) {
        const JsonReader mix = reader.at("default_labels");
        span.default_labels = unique_texts(mix);
        if (span.default_labels.empty()) mix.fail("one label or more");
        for (size_t i = 0; i < span.default_labels.size(); ++i) {
            check_label(mix.at(i), span.default_labels[i]);
        }
    }
    if (reader.has("softmax_logit")) {
        constexpr double kMaxLogit = 80.0;  // exp() of it fits a float
        span.softmax_logit = reader.at("softmax_logit").number(0.0, kMaxLogit);
    }
}

// Size that the kind fixes; what the avatar or the keypoints fix is checked there: `given`.
int64_t condition_size(const ConditionSpan& span, const AudioSpec& audio, int64_t given) {
    switch (span.kind) {
        case ConditionKind::audio:
            return audio.feature_dims;
        case ConditionKind::emotion:
            return static_cast<int64_t>(span.labels.size());
        case ConditionKind::blink_value:
        case ConditionKind::blink_mask:
            return 1;
        case ConditionKind::eye_open:
        case ConditionKind::eye_ball:
        case ConditionKind::source_keypoints:
            break;
    }
    return given;
}

ConditionSpan parse_condition(const JsonReader& reader, const AudioSpec& audio) {
    reader.expect_keys(
        {"kind", "size", "labels", "default_label", "default_labels", "softmax_logit"});
    ConditionSpan span;
    span.kind = one_of(reader.at("kind"), kConditionKinds);
    if (span.kind == ConditionKind::emotion) {
        parse_emotion(reader, span);
    } else {
        for (const auto* key : {"labels", "default_label", "default_labels", "softmax_logit"}) {
            if (reader.has(key)) reader.at(key).fail("no labels, only an emotion span has them");
        }
    }
    const JsonReader size = reader.at("size");
    span.size = size.integer(1, kMaxExtent);
    const int64_t wanted = condition_size(span, audio, span.size);
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
    reader.expect_keys({"timesteps", "schedule", "cosine_s", "default_steps", "default_seed",
                        "step_tables", "default_eta", "stochastic"});
    DiffusionSpec diffusion;
    diffusion.timesteps = reader.at("timesteps").integer(2, kMaxTimesteps);
    if (reader.at("schedule").text() != "cosine") reader.at("schedule").fail("\"cosine\"");
    diffusion.cosine_s = reader.at("cosine_s").number(0.0, 1.0);
    diffusion.default_steps = reader.at("default_steps").integer(1, diffusion.timesteps);
    diffusion.default_seed = static_cast<uint64_t>(reader.at("default_seed").integer(0, INT64_MAX));
    if (reader.has("default_eta")) diffusion.default_eta = reader.at("default_eta").number(0, 1);
    if (reader.has("stochastic")) {
        const JsonReader stochastic = reader.at("stochastic");
        stochastic.expect_keys({"eta", "steps"});
        diffusion.stochastic_eta = stochastic.at("eta").number(1e-6, 1);
        diffusion.stochastic_steps = stochastic.at("steps").integer(1, diffusion.timesteps);
    }
    const JsonReader tables = reader.at("step_tables");
    for (const auto& key : tables.keys()) parse_step_table(tables, key, diffusion);
    return diffusion;
}

ResetSpec parse_reset(const JsonReader& reader, int64_t dims) {
    reader.expect_keys({"interval_windows", "kept_dims"});
    constexpr int64_t kMaxInterval = 1'000'000;
    ResetSpec reset;
    reset.interval_windows = reader.at("interval_windows").integer(0, kMaxInterval);
    if (reader.has("kept_dims") && !reader.at("kept_dims").json().is_null()) {
        const auto range = reader.at("kept_dims").integers(0, dims);
        if (range.size() != 2 || range[0] >= range[1]) {
            reader.at("kept_dims").fail("[begin, end) with begin < end, or null");
        }
        reset.kept_begin = range[0];
        reset.kept_end = range[1];
    }
    return reset;
}

// Keys that a pack may leave out.
void parse_optional(const JsonReader& reader, MotionSpec& motion) {
    motion.smooth_windows = reader.has("smooth_windows") && reader.at("smooth_windows").boolean();
    motion.repeat_last_condition =
        optional_one_of(reader, "last_window", kWindowFills, motion.repeat_last_condition);
    motion.start_from_source =
        optional_one_of(reader, "initial_frame", kInitialFrames, motion.start_from_source);
    if (reader.has("clip")) {
        const JsonReader clip = reader.at("clip");
        clip.expect_keys({"low", "high"});
        motion.clip_low_tensor = clip.at("low").text();
        motion.clip_high_tensor = clip.at("high").text();
    }
    if (reader.has("reset")) motion.reset = parse_reset(reader.at("reset"), motion.dims);
    if (reader.has("source_smoothing_frames")) {
        constexpr int64_t kMaxSourceFilter = 999;
        motion.source_smoothing_frames =
            reader.at("source_smoothing_frames").integer(1, kMaxSourceFilter);
    }
}

void parse_windows(const JsonReader& reader, MotionSpec& motion) {
    constexpr int64_t kMaxWindow = 100'000;
    motion.window_frames = reader.at("window_frames").integer(2, kMaxWindow);
    motion.fusion = optional_one_of(reader, "fusion", kFusions, motion.fusion);
    const JsonReader overlap = reader.at("overlap_frames");
    motion.overlap_frames = overlap.integer(0, kMaxWindow);
    // Offline, a frame is fused from two windows at most; online, a window must bring new frames.
    if (motion.fusion == Fusion::offline && 2 * motion.overlap_frames > motion.window_frames) {
        overlap.fail(fmt::format("at most half of window_frames = {}", motion.window_frames));
    }
    if (motion.overlap_frames >= motion.window_frames) {
        overlap.fail(fmt::format("less than window_frames = {}", motion.window_frames));
    }
}

}  // namespace

MotionSpec parse_motion(const JsonReader& reader, const AudioSpec& audio) {
    reader.expect_keys({"dims", "window_frames", "overlap_frames", "layout", "conditions",
                        "smoothing", "normalisation", "diffusion", "fusion", "smooth_windows",
                        "last_window", "initial_frame", "clip", "reset", "source_smoothing_frames",
                        "composition"});
    MotionSpec motion;
    motion.dims = reader.at("dims").integer(1, kMaxExtent);
    parse_windows(reader, motion);
    parse_layout(reader.at("layout"), motion);
    parse_conditions(reader.at("conditions"), audio, motion);
    parse_smoothing(reader.at("smoothing"), motion);
    const JsonReader normalisation = reader.at("normalisation");
    normalisation.expect_keys({"mean", "std"});
    motion.mean_tensor = normalisation.at("mean").text();
    motion.std_tensor = normalisation.at("std").text();
    motion.diffusion = parse_diffusion(reader.at("diffusion"));
    parse_optional(reader, motion);
    return motion;
}

}  // namespace newscaster::pack
