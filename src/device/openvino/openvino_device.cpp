#include "device/openvino/openvino_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <openvino/core/version.hpp>
#include <openvino/frontend/manager.hpp>
#include <openvino/runtime/core.hpp>
#include <openvino/runtime/properties.hpp>
#include <sstream>
#include <streambuf>
#include <thread>
#include <utility>

#include "core/file.h"
#include "device/graph_cache.h"
#include "device/openvino/cpu_probe.h"
#include "device/openvino/grid_sample_extension.h"
#include "device/openvino/openvino_graph.h"
#include "device/openvino/openvino_support.h"
#include "newscaster/error.h"

namespace newscaster::device {

namespace {

constexpr const char* kDevice = "CPU";

// Reads bytes in memory as a stream, without a copy.
class MemoryStreamBuffer final : public std::streambuf {
  public:
    explicit MemoryStreamBuffer(std::span<const std::byte> bytes) {
        // The get area is only read; std::streambuf has no const variant.
        auto* first = const_cast<char*>(reinterpret_cast<const char*>(bytes.data()));
        setg(first, first, first + bytes.size());
    }

  protected:
    pos_type seekoff(off_type offset, std::ios_base::seekdir from,
                     std::ios_base::openmode /*which*/) override {
        const off_type base = from == std::ios_base::beg   ? 0
                              : from == std::ios_base::cur ? gptr() - eback()
                                                           : egptr() - eback();
        const off_type target = base + offset;
        if (target < 0 || target > egptr() - eback()) return pos_type(off_type(-1));
        setg(eback(), eback() + target, egptr());
        return pos_type(target);
    }
    pos_type seekpos(pos_type position, std::ios_base::openmode which) override {
        return seekoff(off_type(position), std::ios_base::beg, which);
    }
};

// Gives the inputs their concrete shapes; what the graph fixes itself must not change.
void fix_shapes(ov::Model& model, const GraphOptions& options, const std::filesystem::path& file) {
    std::map<std::string, ov::PartialShape> shapes;
    for (const auto& entry : options.input_shapes) {
        const auto& name = entry.first;
        const auto& shape = entry.second;
        shapes[name] = ov::PartialShape(std::vector<ov::Dimension>(shape.begin(), shape.end()));
        const auto ports = model.inputs();
        const auto port = std::ranges::find_if(
            ports, [&](const auto& p) { return p.get_names().contains(name); });
        if (port == ports.end() || !port->get_partial_shape().compatible(shapes[name])) {
            throw Error(
                ErrorCode::bad_pack,
                fmt::format(
                    "{}: input '{}': found {}, wanted one that {} fits", file.string(), name,
                    port == ports.end() ? "no such input" : port->get_partial_shape().to_string(),
                    to_string(shape)));
        }
    }
    model.reshape(shapes);
}

// Refuses a graph, damaged or hostile, that would need absurd memory: OpenVINO takes what a shape
// says.
void check_tensor_sizes(const ov::Model& model, const std::filesystem::path& file) {
    constexpr uint64_t kMaxBytes = 2ULL << 30U;  // several times the largest tensor of Ditto
    for (const auto& node : model.get_ordered_ops()) {
        for (const auto& output : node->outputs()) {
            if (output.get_partial_shape().is_dynamic()) continue;
            const uint64_t element = std::max<uint64_t>(output.get_element_type().size(), 1);
            uint64_t bytes = element;
            for (const uint64_t extent : output.get_shape()) {
                // Saturates just above the limit, before a product can overflow.
                bytes = extent == 0 ? 0 : bytes * std::min(extent, kMaxBytes / element + 1);
                bytes = std::min(bytes, kMaxBytes + 1);
            }
            if (bytes <= kMaxBytes) continue;
            throw Error(ErrorCode::bad_pack,
                        fmt::format("{}: node '{}': found a tensor of shape {}, wanted at most {} "
                                    "MiB",
                                    file.string(), node->get_friendly_name(),
                                    output.get_partial_shape().to_string(), kMaxBytes >> 20U));
        }
    }
}

class OpenVinoDevice final : public Device {
  public:
    explicit OpenVinoDevice(const DeviceOptions& options);

    [[nodiscard]] const DeviceInfo& info() const override { return info_; }
    [[nodiscard]] std::unique_ptr<Stream> make_stream() override {
        return std::make_unique<HostStream>();
    }
    [[nodiscard]] BufferPtr allocate(TensorInfo info, Location /*location*/) override {
        return std::make_shared<HostBuffer>(std::move(info));
    }
    void copy(Buffer& source, Buffer& target, Stream& stream) override;
    [[nodiscard]] GraphSignature inspect(const std::filesystem::path& onnx_file) override;
    [[nodiscard]] std::unique_ptr<Graph> load(const std::filesystem::path& onnx_file,
                                              const std::string& content_hash,
                                              const GraphOptions& options) override;

  private:
    [[nodiscard]] std::shared_ptr<ov::Model> read(const std::filesystem::path& onnx_file);
    [[nodiscard]] ov::element::Type inference_type(Precision precision) const;
    [[nodiscard]] ov::AnyMap compile_options(const GraphOptions& options) const;
    [[nodiscard]] nlohmann::json describe(const std::string& content_hash,
                                          const GraphOptions& options) const;
    [[nodiscard]] ov::CompiledModel compile(const std::filesystem::path& onnx_file,
                                            const GraphOptions& options);
    [[nodiscard]] std::unique_ptr<Graph> load_cached(const std::filesystem::path& onnx_file,
                                                     const nlohmann::json& description,
                                                     const GraphOptions& options);
    void store_cached(ov::CompiledModel& compiled, const std::string& origin,
                      const nlohmann::json& description) const;

    DeviceOptions options_;
    DeviceInfo info_;
    std::vector<std::string> capabilities_;
    GraphCache cache_;
    std::vector<std::shared_ptr<ov::Extension>> extensions_ = grid_sample_extensions();
    ov::Core core_;
};

OpenVinoDevice::OpenVinoDevice(const DeviceOptions& options)
    : options_(options), cache_(options.cache_dir, options.log) {
    core_.add_extension(extensions_);
    capabilities_ = core_.get_property(kDevice, ov::device::capabilities);
    const auto has = [&](const char* name) {
        return std::ranges::find(capabilities_, name) != capabilities_.end();
    };
    // Where bf16 is native, int8 gains little over it and loses more: bf16 first.
    if (has_native_bf16(capabilities_)) info_.precisions.push_back(Precision::bf16);
    if (has(ov::device::capability::FP16)) info_.precisions.push_back(Precision::f16);
    if (has(ov::device::capability::INT8)) info_.precisions.push_back(Precision::int8);
    info_.precisions.push_back(Precision::f32);
    info_.provider = "cpu";
    info_.name = core_.get_property(kDevice, ov::device::full_name);
    info_.runtime = fmt::format("OpenVINO {}", ov::get_openvino_version().buildNumber);
    info_.cores = options.threads > 0
                      ? options.threads
                      : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    info_.memory_bytes = available_memory_bytes();
}

void OpenVinoDevice::copy(Buffer& source, Buffer& target, Stream& /*stream*/) {
    if (source.bytes() != target.bytes() || source.host_data() == nullptr ||
        target.host_data() == nullptr) {
        throw Error(
            ErrorCode::runtime,
            fmt::format("copy '{}' to '{}': found {} and {} bytes, wanted equal sizes in "
                        "host memory",
                        source.info().name, target.info().name, source.bytes(), target.bytes()));
    }
    if (source.bytes() > 0) {
        std::memmove(target.host_data(), source.host_data(), source.bytes());
    }
}

std::shared_ptr<ov::Model> OpenVinoDevice::read(const std::filesystem::path& onnx_file) {
    std::error_code missing;
    if (!std::filesystem::is_regular_file(onnx_file, missing)) {
        throw Error(ErrorCode::bad_pack,
                    fmt::format("{}: found no such file, wanted a graph", onnx_file.string()));
    }
    try {
        // Not Core::read_model: it offers unknown files to every other frontend too, and some of
        // those print.
        const char* framework = onnx_file.extension() == ".tflite" ? "tflite" : "onnx";
        const auto frontend = ov::frontend::FrontEndManager().load_by_framework(framework);
        for (const auto& extension : extensions_) frontend->add_extension(extension);
        return frontend->convert(frontend->load(onnx_file.string()));
    } catch (const std::exception& e) {
        throw Error(ErrorCode::bad_pack,
                    fmt::format("{}: not a usable graph: {}", onnx_file.string(), one_line(e)));
    }
}

GraphSignature OpenVinoDevice::inspect(const std::filesystem::path& onnx_file) {
    const std::shared_ptr<const ov::Model> model = read(onnx_file);
    GraphSignature signature;
    for (const auto& port : model->inputs()) signature.inputs.push_back(port_info(port));
    for (const auto& port : model->outputs()) signature.outputs.push_back(port_info(port));
    return signature;
}

ov::element::Type OpenVinoDevice::inference_type(Precision precision) const {
    const auto& known = info_.precisions;
    if (std::ranges::find(known, precision) == known.end()) {
        std::string list;
        for (const auto p : known) list += fmt::format(" {}", name_of(p));
        throw Error(ErrorCode::device_unavailable,
                    fmt::format("precision: found {}, wanted one that runs natively on {}:{}",
                                name_of(precision), info_.name, list));
    }
    const bool bf16 = std::ranges::find(known, Precision::bf16) != known.end();
    switch (precision) {
        case Precision::bf16:
            return ov::element::bf16;
        case Precision::f16:
            return ov::element::f16;
        case Precision::int8:  // quantised inside the graph; this is for what stayed float
            return bf16 ? ov::element::bf16 : ov::element::f32;
        default:
            return ov::element::f32;
    }
}

ov::AnyMap OpenVinoDevice::compile_options(const GraphOptions& options) const {
    ov::AnyMap map{ov::hint::inference_precision(inference_type(options.precision)),
                   // Pinned threads of two processes would share the same cores.
                   ov::hint::enable_cpu_pinning(false)};
    if (options.concurrency <= 1) {
        map.insert(ov::hint::performance_mode(ov::hint::PerformanceMode::LATENCY));
    } else {
        map.insert(ov::num_streams(ov::streams::Num(options.concurrency)));
    }
    map.insert(ov::inference_num_threads(info_.cores));
    return map;
}

nlohmann::json OpenVinoDevice::describe(const std::string& content_hash,
                                        const GraphOptions& options) const {
    nlohmann::json shapes = nlohmann::json::object();
    for (const auto& [name, shape] : options.input_shapes) shapes[name] = shape;
    return {{"provider", info_.provider},
            {"content_sha256", content_hash},
            {"runtime", info_.runtime},
            {"cpu", info_.name},
            {"capabilities", capabilities_},
            {"instruction_sets", instruction_sets()},
            {"grid_sample_version", kGridSampleVersion},
            {"precision", std::string(name_of(options.precision))},
            {"concurrency", options.concurrency},
            {"threads", info_.cores},
            {"input_shapes", shapes}};
}

ov::CompiledModel OpenVinoDevice::compile(const std::filesystem::path& onnx_file,
                                          const GraphOptions& options) {
    const auto compile_map = compile_options(options);  // a missing precision is told first
    const auto model = read(onnx_file);
    try {
        if (!options.input_shapes.empty()) fix_shapes(*model, options, onnx_file);
        check_tensor_sizes(*model, onnx_file);
        return core_.compile_model(model, kDevice, compile_map);
    } catch (const Error&) {
        throw;
    } catch (const std::exception& e) {
        throw Error(ErrorCode::bad_pack, fmt::format("{}: the graph does not compile: {}",
                                                     onnx_file.string(), one_line(e)));
    }
}

std::unique_ptr<Graph> OpenVinoDevice::load_cached(const std::filesystem::path& onnx_file,
                                                   const nlohmann::json& description,
                                                   const GraphOptions& options) {
    const auto payload = cache_.find(description);
    if (!payload) return nullptr;
    try {
        MemoryStreamBuffer buffer(*payload);
        std::istream stream(&buffer);
        return std::make_unique<OpenVinoGraph>(
            core_.import_model(stream, kDevice, compile_options(options)), onnx_file.string());
    } catch (const std::exception& e) {
        options_.log(LogLevel::warning,
                     "compiled graph {}: cannot be imported: {}; compiling again",
                     cache_.file_of(description).string(), one_line(e));
        return nullptr;
    }
}

void OpenVinoDevice::store_cached(ov::CompiledModel& compiled, const std::string& origin,
                                  const nlohmann::json& description) const {
    try {
        std::ostringstream stream(std::ios::binary);
        compiled.export_model(stream);
        const auto view = stream.view();
        cache_.store(description, std::as_bytes(std::span(view.data(), view.size())));
    } catch (const std::exception& e) {
        options_.log(LogLevel::warning, "{}: not cached, the compiled graph cannot be exported: {}",
                     origin, one_line(e));
    }
}

std::unique_ptr<Graph> OpenVinoDevice::load(const std::filesystem::path& onnx_file,
                                            const std::string& content_hash,
                                            const GraphOptions& options) {
    if (options.concurrency < 1) {
        throw Error(ErrorCode::bad_input,
                    fmt::format("concurrency: found {}, wanted >= 1", options.concurrency));
    }
    if (!cache_.enabled()) {
        return std::make_unique<OpenVinoGraph>(compile(onnx_file, options), onnx_file.string());
    }
    const auto description =
        describe(content_hash.empty() ? sha256_of_file(onnx_file) : content_hash, options);
    if (auto graph = load_cached(onnx_file, description, options)) return graph;
    auto compiled = compile(onnx_file, options);
    auto graph = std::make_unique<OpenVinoGraph>(compiled, onnx_file.string());
    store_cached(compiled, onnx_file.string(), description);
    return graph;
}

}  // namespace

std::unique_ptr<Device> open_openvino_device(const DeviceOptions& options) {
    if (options.threads < 0) {
        throw Error(ErrorCode::bad_input,
                    fmt::format("threads: found {}, wanted >= 0", options.threads));
    }
    try {
        return std::make_unique<OpenVinoDevice>(options);
    } catch (const std::exception& e) {
        throw Error(ErrorCode::device_unavailable,
                    fmt::format("cpu: the OpenVINO runtime does not start: {}", one_line(e)));
    }
}

}  // namespace newscaster::device
