#include "pack/pack.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/file.h"
#include "newscaster/error.h"

namespace newscaster::pack {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kManifestFile = "pack.json";
constexpr uint64_t kMaxConstantsBytes = 1ULL << 30U;

[[noreturn]] void fail(const fs::path& file, const std::string& what) {
    throw Error(ErrorCode::bad_pack, fmt::format("{}: {}", file.string(), what));
}

// A file of the pack that cannot be read is a fault of the pack, not of the disk.
template <typename Read>
auto as_pack_error(Read read) {
    try {
        return read();
    } catch (const Error& error) {
        if (error.code() != ErrorCode::io) throw;
        throw Error(ErrorCode::bad_pack, error.what());
    }
}

std::string hash_fault(const std::string& found, const std::string& wanted) {
    return fmt::format("sha256 is {}, the manifest wants {}: the file is damaged or replaced",
                       found, wanted);
}

TensorMap read_constants(const fs::path& file, const GraphFile& expected) {
    const auto bytes = as_pack_error([&] { return read_file(file, kMaxConstantsBytes); });
    const std::string found = sha256_hex(std::span<const std::byte>(bytes));
    if (found != expected.sha256) fail(file, hash_fault(found, expected.sha256));
    TensorMap constants;
    for (const auto& [name, tensor] : parse_safetensors(bytes, file.string())) {
        constants.emplace(name, tensor.to_f32());
    }
    return constants;
}

// Extents below 0 in `open` fit any.
bool shape_fits(const Shape& open, const Shape& concrete) {
    return open.size() == concrete.size() &&
           std::equal(open.begin(), open.end(), concrete.begin(),
                      [](int64_t a, int64_t b) { return a < 0 || a == b; });
}

// -1 in `wanted`: any extent.
void require_constant(const TensorMap& constants, const fs::path& file, const std::string& name,
                      const Shape& wanted, bool positive = false) {
    const auto found = constants.find(name);
    if (found == constants.end()) fail(file, fmt::format("constant '{}' is missing", name));
    if (!shape_fits(wanted, found->second.shape())) {
        fail(file, fmt::format("constant '{}': found shape {}, wanted {}", name,
                               to_string(found->second.shape()), to_string(wanted)));
    }
    const auto values = found->second.as<float>();
    const bool sound = std::all_of(values.begin(), values.end(), [&](float value) {
        return std::isfinite(value) && (!positive || value > 0.0F);
    });
    if (!sound) {
        fail(file, fmt::format("constant '{}': found a value that is not {}", name,
                               positive ? "positive and finite" : "finite"));
    }
}

void require_ordered(const TensorMap& constants, const fs::path& file, const std::string& low,
                     const std::string& high) {
    const auto lows = constants.find(low)->second.as<float>();
    const auto highs = constants.find(high)->second.as<float>();
    for (size_t i = 0; i < lows.size(); ++i) {
        if (lows[i] <= highs[i]) continue;
        fail(file, fmt::format("constants '{}' and '{}': found {} > {} at dim {}, wanted low <= "
                               "high",
                               low, high, lows[i], highs[i], i));
    }
}

void check_constants(const TensorMap& constants, const fs::path& file, const Manifest& manifest) {
    const auto& motion = manifest.motion;
    require_constant(constants, file, motion.mean_tensor, {motion.dims});
    require_constant(constants, file, motion.std_tensor, {motion.dims}, true);
    if (!motion.clip_low_tensor.empty()) {
        require_constant(constants, file, motion.clip_low_tensor, {motion.dims});
        require_constant(constants, file, motion.clip_high_tensor, {motion.dims});
        require_ordered(constants, file, motion.clip_low_tensor, motion.clip_high_tensor);
    }
    if (motion.composition && !motion.composition->blink.offsets.empty()) {
        require_constant(constants, file, motion.composition->blink.offsets,
                         {-1, 3 * manifest.keypoints.count});
    }
    if (const auto* shapes = motion.find(SpanKind::blendshapes); shapes != nullptr) {
        require_constant(constants, file, manifest.keypoints.expression_basis,
                         {shapes->size, manifest.keypoints.count, 3});
    }
}

// One line per difference between the tensors of a file and those the manifest promises.
void compare_tensors(const std::vector<device::TensorInfo>& in_file,
                     const std::map<std::string, TensorSpec>& in_manifest, std::string_view side,
                     std::vector<std::string>& faults) {
    for (const auto& info : in_file) {
        const auto wanted = in_manifest.find(info.name);
        if (wanted == in_manifest.end()) {
            faults.push_back(fmt::format("{} '{}' is not in the manifest", side, info.name));
        } else if (wanted->second.dtype != info.dtype ||
                   !shape_fits(info.shape, wanted->second.shape)) {
            faults.push_back(fmt::format("{} '{}': found {} {}, the manifest wants {} {}", side,
                                         info.name, name_of(info.dtype), to_string(info.shape),
                                         name_of(wanted->second.dtype),
                                         to_string(wanted->second.shape)));
        }
    }
    for (const auto& [name, spec] : in_manifest) {
        const bool present =
            std::any_of(in_file.begin(), in_file.end(),
                        [&wanted = name](const auto& info) { return info.name == wanted; });
        if (!present) {
            faults.push_back(fmt::format("{} '{}' of the manifest is missing", side, name));
        }
    }
}

// Faults of one graph file; empty = sound. Contents are looked at only when the hash fits.
std::vector<std::string> graph_faults(device::Device& device, const fs::path& file,
                                      const GraphFile& expected, const GraphSpec& spec) {
    std::vector<std::string> faults;
    try {
        const std::string found = sha256_of_file(file);
        if (found != expected.sha256) return {hash_fault(found, expected.sha256)};
        const auto signature = device.inspect(file);
        compare_tensors(signature.inputs, spec.inputs, "input", faults);
        compare_tensors(signature.outputs, spec.outputs, "output", faults);
    } catch (const Error& error) {
        faults.emplace_back(error.what());
    }
    return faults;
}

bool is_offered(const GraphSpec& graph, std::string_view precision) {
    return graph.variants.contains(std::string(precision)) ||
           std::find(graph.precisions.begin(), graph.precisions.end(), precision) !=
               graph.precisions.end();
}

std::vector<std::string> offered(const GraphSpec& graph) {
    std::vector<std::string> names = graph.precisions;
    for (const auto& [name, file] : graph.variants) {
        if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
    return names;
}

std::vector<GraphFile> files_of(const GraphSpec& graph) {
    std::vector<GraphFile> files{graph.model};
    for (const auto& [precision, file] : graph.variants) files.push_back(file);
    return files;
}

}  // namespace

Pack Pack::open(const fs::path& folder) {
    const fs::path manifest_file = folder / kManifestFile;
    Pack pack;
    pack.folder_ = folder;
    pack.manifest_ = as_pack_error(
        [&] { return parse_manifest(read_text(manifest_file), manifest_file.string()); });
    pack.avatar_key_ = newscaster::pack::avatar_key(pack.manifest_);
    const auto& expected = pack.manifest_.constants;
    const fs::path constants_file = folder / expected.file;
    pack.constants_ = read_constants(constants_file, expected);
    check_constants(pack.constants_, constants_file, pack.manifest_);
    for (const auto& [graph_role, graph] : pack.manifest_.graphs) {
        for (const auto& file : files_of(graph)) {
            std::error_code ignored;
            if (!fs::is_regular_file(folder / file.file, ignored)) {
                fail(folder / file.file,
                     fmt::format("the file is missing, the manifest's graph {} wants it",
                                 graph_role));
            }
        }
    }
    return pack;
}

const Tensor& Pack::constant(const std::string& name) const {
    const auto found = constants_.find(name);
    if (found == constants_.end()) {
        fail(folder_ / manifest_.constants.file, fmt::format("constant '{}' is missing", name));
    }
    return found->second;
}

const GraphFile& Pack::file_of(const GraphSpec& graph, std::string_view role,
                               const std::string& precision) const {
    if (!is_offered(graph, precision)) {
        throw Error(ErrorCode::device_unavailable,
                    fmt::format("pack {}: graph {}: found precision {}, wanted one of: {}",
                                manifest_.name, role, precision, fmt::join(offered(graph), ", ")));
    }
    const auto variant = graph.variants.find(precision);
    return variant == graph.variants.end() ? graph.model : variant->second;
}

GraphSource Pack::graph_source(std::string_view role, device::Precision precision,
                               int64_t batch) const {
    const GraphSpec& graph = manifest_.graph(role);
    const GraphFile& chosen = file_of(graph, role, std::string(device::name_of(precision)));
    GraphSource source{folder_ / chosen.file, {}};
    for (const auto& [name, spec] : graph.inputs) {
        Shape shape = spec.shape;
        if (batch != 1 && !shape.empty() && shape[0] == 1) shape[0] = batch;
        source.input_shapes.emplace(name, std::move(shape));
    }
    return source;
}

std::unique_ptr<device::Graph> Pack::load_graph(device::Device& device, std::string_view role,
                                                device::Precision precision, int concurrency,
                                                int64_t batch) const {
    const GraphSpec& graph = manifest_.graph(role);
    const GraphFile& chosen = file_of(graph, role, std::string(device::name_of(precision)));
    GraphSource source = graph_source(role, precision, batch);
    const auto faults = graph_faults(device, source.file, chosen, graph);
    if (!faults.empty()) fail(source.file, fmt::format("{}", fmt::join(faults, "; ")));

    device::GraphOptions options;
    options.precision = precision;
    options.concurrency = concurrency;
    options.input_shapes = std::move(source.input_shapes);
    return device.load(source.file, chosen.sha256, options);
}

bool Pack::offers(std::string_view role, device::Precision precision) const {
    return is_offered(manifest_.graph(role), device::name_of(precision));
}

device::Precision Pack::pick_precision(const device::DeviceInfo& device,
                                       const std::vector<std::string_view>& roles) const {
    for (const auto precision : device.precisions) {
        if (std::all_of(roles.begin(), roles.end(), [&](std::string_view graph_role) {
                return offers(graph_role, precision);
            })) {
            return precision;
        }
    }
    std::vector<std::string_view> names;
    for (const auto precision : device.precisions) names.push_back(device::name_of(precision));
    throw Error(ErrorCode::device_unavailable,
                fmt::format("pack {}: no precision of {} ({}) fits all of: {}", manifest_.name,
                            device.name, fmt::join(names, ", "), fmt::join(roles, ", ")));
}

std::vector<std::string> Pack::verify(device::Device& device) const {
    std::vector<std::string> faults;
    const fs::path constants_file = folder_ / manifest_.constants.file;
    try {
        check_constants(read_constants(constants_file, manifest_.constants), constants_file,
                        manifest_);
    } catch (const Error& error) {
        faults.emplace_back(error.what());
    }
    for (const auto& [graph_role, graph] : manifest_.graphs) {
        for (const auto& file : files_of(graph)) {
            const fs::path path = folder_ / file.file;
            for (const auto& fault : graph_faults(device, path, file, graph)) {
                faults.push_back(fmt::format("{}: graph {}: {}", path.string(), graph_role, fault));
            }
        }
    }
    return faults;
}

}  // namespace newscaster::pack
