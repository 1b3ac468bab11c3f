#include "pack/json_parts.h"
#include "pack/manifest_sections.h"

namespace newscaster::pack {

namespace {

enum class Direction { input, output };

// What the engine means by a binding word, and the tensor it wants there.
struct BindingRule {
    std::string_view role;
    std::string_view word;
    Direction direction;
    bool required;
    Shape shape;  // -1: any
    DType dtype = DType::f32;
};

std::vector<BindingRule> binding_rules(const Manifest& manifest) {
    const auto& audio = manifest.audio;
    const auto& motion = manifest.motion;
    const Shape track{1, motion.window_frames, motion.dims};
    const Shape points{1, manifest.keypoints.count, 3};
    const Shape crop{1, 3, manifest.crop.size_px, manifest.crop.size_px};
    constexpr auto kIn = Direction::input;
    constexpr auto kOut = Direction::output;
    return {
        {role::kAudioEncoder, "audio", kIn, true, {1, audio.window_samples()}},
        {role::kAudioEncoder, "features", kOut, true, {1, -1, audio.feature_dims}},
        {role::kAudioEncoder,
         "phones",
         kOut,
         !audio.phones.empty(),
         {1, -1, static_cast<int64_t>(audio.phones.size())}},
        {role::kMotionGenerator, "latent", kIn, true, track},
        {role::kMotionGenerator, "previous_frame", kIn, true, {1, motion.dims}},
        {role::kMotionGenerator,
         "condition",
         kIn,
         true,
         {1, motion.window_frames, motion.condition_dims}},
        {role::kMotionGenerator, "timestep", kIn, true, {1}, DType::i64},
        {role::kMotionGenerator, "noise", kOut, true, track},
        {role::kMotionGenerator, "sample", kOut, true, track},
        {role::kAppearanceExtractor, "image", kIn, true, {1, 3, -1, -1}},
        {role::kMotionExtractor, "image", kIn, true, {1, 3, -1, -1}},
        {role::kMotionExtractor, "motion", kOut, false, {1, motion.dims}},
        {role::kMotionExtractor, "canonical_keypoints", kOut, false, points},
        {role::kStitch, "source_keypoints", kIn, true, points},
        {role::kStitch, "driving_keypoints", kIn, true, points},
        {role::kStitch, "stitched_keypoints", kOut, true, points},
        {role::kWarp, "source_keypoints", kIn, true, points},
        {role::kWarp, "driving_keypoints", kIn, true, points},
        {role::kWarp, "source_image", kIn, false, crop},
        {role::kDecoder, "source_keypoints", kIn, false, points},
        {role::kDecoder, "driving_keypoints", kIn, false, points},
        {role::kDecoder, "source_image", kIn, false, crop},
        {role::kDecoder, "image", kOut, true, crop},
    };
}

constexpr std::array<std::string_view, 7> kRoles{role::kAudioEncoder,    role::kMotionGenerator,
                                                 role::kStitch,          role::kAppearanceExtractor,
                                                 role::kMotionExtractor, role::kWarp,
                                                 role::kDecoder};

bool is_precision(const std::string& name) {
    return std::find(kPrecisionNames.begin(), kPrecisionNames.end(), name) != kPrecisionNames.end();
}

std::map<std::string, TensorSpec> parse_tensors(const JsonReader& reader) {
    std::map<std::string, TensorSpec> tensors;
    for (const auto& name : reader.keys()) {
        const JsonReader item = reader.at(name);
        if (name.empty()) item.fail("a tensor name");
        item.expect_keys({"dtype", "shape"});
        TensorSpec spec;
        const JsonReader dtype = item.at("dtype");
        try {
            spec.dtype = dtype_from_name(dtype.text());
        } catch (const Error& error) {
            if (error.code() != ErrorCode::bad_input) throw;
            dtype.fail("an element type such as f32, f16, i64 or u8");
        }
        spec.shape = item.at("shape").shape();
        tensors.emplace(name, std::move(spec));
    }
    if (tensors.empty()) reader.fail("one tensor or more");
    return tensors;
}

bool shape_fits(const Shape& found, const Shape& wanted) {
    return found.size() == wanted.size() &&
           std::equal(found.begin(), found.end(), wanted.begin(),
                      [](int64_t a, int64_t b) { return b < 0 || a == b; });
}

void check_binding(const JsonReader& reader, const GraphSpec& graph, const BindingRule& rule) {
    const bool is_input = rule.direction == Direction::input;
    const auto& tensors = is_input ? graph.inputs : graph.outputs;
    const auto found = tensors.find(reader.text());
    if (found == tensors.end()) {
        reader.fail(fmt::format("the name of an {} of this graph", is_input ? "input" : "output"));
    }
    const auto& [name, spec] = *found;
    if (spec.dtype != rule.dtype || !shape_fits(spec.shape, rule.shape)) {
        reader.fail(fmt::format("a tensor of {} {}, but {} is {} {}", name_of(rule.dtype),
                                to_string(rule.shape), name, name_of(spec.dtype),
                                to_string(spec.shape)));
    }
}

void parse_bindings(const JsonReader& reader, std::string_view graph_role, GraphSpec& graph,
                    const std::vector<BindingRule>& rules) {
    std::set<std::string> bound;
    for (const auto& word : reader.keys()) {
        const JsonReader item = reader.at(word);
        const auto rule = std::find_if(rules.begin(), rules.end(), [&](const auto& r) {
            return r.role == graph_role && r.word == word;
        });
        if (rule == rules.end()) item.fail(fmt::format("no such word for a {} graph", graph_role));
        check_binding(item, graph, *rule);
        if (!bound.insert(item.text()).second) item.fail("a tensor not bound to another word");
        graph.bindings.emplace(word, item.text());
    }
    for (const auto& rule : rules) {
        if (rule.role == graph_role && rule.required) (void)reader.at(rule.word);
    }
}

GraphSpec parse_graph(const JsonReader& reader, std::string_view graph_role,
                      const std::vector<BindingRule>& rules) {
    reader.expect_keys(
        {"file", "sha256", "precisions", "variants", "inputs", "outputs", "bindings"});
    GraphSpec graph;
    graph.model = parse_file(reader);
    const JsonReader precisions = reader.at("precisions");
    graph.precisions = unique_texts(precisions);
    for (size_t i = 0; i < graph.precisions.size(); ++i) {
        if (!is_precision(graph.precisions[i])) precisions.at(i).fail("a precision, e.g. bf16");
    }
    if (std::find(graph.precisions.begin(), graph.precisions.end(), "f32") ==
        graph.precisions.end()) {
        precisions.fail("f32 among them");
    }
    const JsonReader variants = reader.at("variants");
    for (const auto& name : variants.keys()) {
        const JsonReader item = variants.at(name);
        if (name == "f32" || !is_precision(name)) {
            item.fail("a key that is a precision other than f32, e.g. int8");
        }
        item.expect_keys({"file", "sha256"});
        graph.variants.emplace(name, parse_file(item));
    }
    graph.inputs = parse_tensors(reader.at("inputs"));
    graph.outputs = parse_tensors(reader.at("outputs"));
    for (const auto& [name, spec] : graph.outputs) {
        if (graph.inputs.contains(name)) {
            reader.at("outputs").at(name).fail("a name that is not also an input");
        }
    }
    parse_bindings(reader.at("bindings"), graph_role, graph, rules);
    return graph;
}

// The rows that one call yields must hold every present frame.
void check_feature_rows(const JsonReader& encoder, const Manifest& manifest) {
    const auto& graph = manifest.graph(role::kAudioEncoder);
    const auto& audio = manifest.audio;
    const int64_t wanted = audio.first_row + audio.present_frames * audio.rows_per_frame;
    for (const char* word : {"features", "phones"}) {
        if (!graph.bindings.contains(word)) continue;
        const auto& name = graph.tensor(word);
        if (graph.outputs.at(name).shape[1] >= wanted) continue;
        encoder.at("outputs").at(name).at("shape").fail(
            fmt::format("at least {} rows: first_row + present_frames * rows_per_frame", wanted));
    }
}

// Warp outputs reach the decoder by name; both ends must mean the same tensor.
void check_connections(const JsonReader& decoder, const Manifest& manifest) {
    const auto& outputs = manifest.graph(role::kWarp).outputs;
    for (const auto& [name, spec] : manifest.graph(role::kDecoder).inputs) {
        const auto found = outputs.find(name);
        if (found == outputs.end()) continue;
        if (found->second.dtype != spec.dtype || found->second.shape != spec.shape) {
            decoder.at("inputs").at(name).fail(fmt::format("{} {}, as the warp graph makes it",
                                                           name_of(found->second.dtype),
                                                           to_string(found->second.shape)));
        }
    }
}

}  // namespace

void parse_graphs(const JsonReader& reader, Manifest& manifest) {
    const auto rules = binding_rules(manifest);
    for (const auto& graph_role : reader.keys()) {
        const JsonReader item = reader.at(graph_role);
        if (std::find(kRoles.begin(), kRoles.end(), graph_role) == kRoles.end()) {
            item.fail(fmt::format("a key that is one of: {}", fmt::join(kRoles, ", ")));
        }
        manifest.graphs.emplace(graph_role, parse_graph(item, graph_role, rules));
    }
    (void)reader.at(role::kWarp);
    check_connections(reader.at(role::kDecoder), manifest);
    const auto& composition = manifest.motion.composition;
    if (composition && composition->stitching) (void)reader.at(role::kStitch);
    if (manifest.graphs.contains(role::kAudioEncoder)) {
        check_feature_rows(reader.at(role::kAudioEncoder), manifest);
    }
}

}  // namespace newscaster::pack
