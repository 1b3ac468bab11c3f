// Times graphs on the GPU and prints one JSON line per file:
//
//   newscaster_cuda_bench [--profile] [--inputs F] [--outputs F] f32|f16 BATCH FILE.onnx...
//
// Inputs come from the safetensors file F by name, else they are random. A time is one replay
// including its launch, until the stream is idle. --outputs stores what the last file gave,
// --profile adds the time of every step of the plan alone.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <random>
#include <string_view>
#include <vector>

#include "core/safetensors.h"
#include "device/cuda/cuda_device.h"
#include "device/cuda/cuda_session.h"
#include "newscaster/error.h"

namespace newscaster::device::cuda {
namespace {

constexpr int kWarmUp = 20;
constexpr int kRepeats = 100;
constexpr int kProfileRepeats = 20;
constexpr int64_t kSignal = 15360;

struct Request {
    bool profile = false;
    TensorMap inputs;
    std::string outputs;
    Precision precision = Precision::f16;
    int64_t batch = 1;
};

double milliseconds(std::chrono::steady_clock::duration span) {
    return std::chrono::duration<double, std::milli>(span).count();
}

void bind_inputs(Device& device, Stream& stream, const Graph& graph, Session& session,
                 const TensorMap& given) {
    std::mt19937 random(1);
    std::uniform_real_distribution<float> values(-0.5F, 0.5F);
    for (const auto& info : graph.inputs()) {
        const auto host = device.allocate(info, Location::pinned);
        if (const auto found = given.find(info.name); found != given.end()) {
            if (found->second.bytes() != host->bytes()) {
                throw Error(ErrorCode::bad_input,
                            fmt::format("input {}: found {} bytes, wanted {}", info.name,
                                        found->second.bytes(), host->bytes()));
            }
            std::memcpy(host->host_data(), found->second.data(), host->bytes());
        } else if (info.dtype == DType::f32) {
            std::ranges::generate(host->host_f32(), [&] { return values(random); });
        }
        const auto target = device.allocate(info, Location::device);
        device.copy(*host, *target, stream);
        stream.synchronize();
        session.bind(info.name, target);
    }
}

void store_outputs(Device& device, Stream& stream, const Graph& graph, Session& session,
                   const std::string& file) {
    TensorMap outputs;
    for (const auto& info : graph.outputs()) {
        const auto host = device.allocate(info, Location::pinned);
        device.copy(*session.buffer(info.name), *host, stream);
        stream.synchronize();
        Tensor tensor(info.dtype, info.shape);
        std::memcpy(tensor.data(), host->host_data(), host->bytes());
        outputs[info.name] = std::move(tensor);
    }
    write_safetensors(file, outputs);
}

// Multiply-adds of convolutions and products; 0 for other kernels.
double macs_of(const Plan& plan, const Step& step) {
    if (const auto* gemm = std::get_if<GemmStep>(&step.work)) {
        return static_cast<double>(gemm->m * gemm->n * gemm->k * gemm->batch);
    }
    if (const auto* kernel = std::get_if<KernelStep>(&step.work)) {
        return static_cast<double>(kernel->macs);
    }
    const auto& values = plan.graph.values;
    const auto& taps = std::get<ConvStep>(step.work).window.kernel;
    double macs = static_cast<double>(values[step.writes].count()) *
                  static_cast<double>(values[step.reads[0]].shape[1]);
    for (const int64_t extent : taps) macs *= static_cast<double>(extent);
    return macs;
}

nlohmann::json steps_of(CudaSession& session) {
    auto list = nlohmann::json::array();
    const auto times = session.profile(kProfileRepeats);
    const Plan& plan = session.plan();
    for (size_t i = 0; i < times.size(); ++i) {
        const Step& step = plan.steps[i];
        const bool generated = std::holds_alternative<KernelStep>(step.work);
        const bool conv = std::holds_alternative<ConvStep>(step.work);
        list.push_back({{"step", step.label},
                        {"by", generated ? "kernel"
                               : conv    ? "cudnn"
                                         : "cublaslt"},
                        {"shape", plan.storage[step.writes].extents},
                        {"ms", times[i]},
                        {"gmac", macs_of(plan, step) * 1e-9}});
    }
    return list;
}

nlohmann::json measure(Device& device, const std::string& file, const Request& request) {
    GraphOptions options{.precision = request.precision, .concurrency = 1, .input_shapes = {}};
    for (const auto& info : device.inspect(file).inputs) {
        Shape shape = info.shape;
        for (auto& extent : shape) {
            // The dynamic extent of a signal is its length: 0.96 s at 16 kHz.
            if (extent < 0) extent = info.name == "wav" ? kSignal : request.batch;
        }
        options.input_shapes[info.name] = shape;
    }
    const auto before = std::chrono::steady_clock::now();
    const auto graph = device.load(file, "", options);
    const double load_ms = milliseconds(std::chrono::steady_clock::now() - before);
    const auto made = graph->make_session();
    auto& session = dynamic_cast<CudaSession&>(*made);
    const auto stream = device.make_stream();
    bind_inputs(device, *stream, *graph, session, request.inputs);
    std::vector<double> times;
    for (int i = 0; i < kWarmUp + kRepeats; ++i) {
        const auto start = std::chrono::steady_clock::now();
        session.run(*stream);
        stream->synchronize();
        if (i >= kWarmUp) times.push_back(milliseconds(std::chrono::steady_clock::now() - start));
    }
    std::ranges::sort(times);
    const double median = times[times.size() / 2];
    if (!request.outputs.empty()) {
        store_outputs(device, *stream, *graph, session, request.outputs);
    }
    nlohmann::json result{{"graph", file},
                          {"precision", name_of(request.precision)},
                          {"batch", request.batch},
                          {"median_ms", median},
                          {"ms_per_frame", median / static_cast<double>(request.batch)},
                          {"p10_ms", times[times.size() / 10]},
                          {"p90_ms", times[times.size() * 9 / 10]},
                          {"repeats", kRepeats},
                          {"load_ms", load_ms},
                          {"arena_bytes", session.plan().arena_bytes},
                          {"gpu", device.info().name},
                          {"runtime", device.info().runtime}};
    if (request.profile) result["steps"] = steps_of(session);
    return result;
}

int run(std::vector<std::string> words) {
    Request request;
    size_t next = 0;
    for (; next < words.size() && words[next].starts_with("--"); ++next) {
        if (words[next] == "--profile") {
            request.profile = true;
        } else if (words[next] == "--inputs" && next + 1 < words.size()) {
            request.inputs = read_safetensors(words[++next]);
        } else if (words[next] == "--outputs" && next + 1 < words.size()) {
            request.outputs = words[++next];
        } else {
            throw Error(
                ErrorCode::bad_input,
                fmt::format("found {}, wanted --profile, --inputs F or --outputs F", words[next]));
        }
    }
    if (words.size() < next + 3) {
        throw Error(ErrorCode::bad_input, "wanted f32|f16 BATCH FILE.onnx...");
    }
    request.precision = precision_from_name(words[next]);
    request.batch = std::atoll(words[next + 1].c_str());
    const auto device = open_cuda_device({});
    for (size_t i = next + 2; i < words.size(); ++i) {
        fmt::print("{}\n", measure(*device, words[i], request).dump());
    }
    return 0;
}

}  // namespace
}  // namespace newscaster::device::cuda

int main(int argc, char** argv) {
    try {
        return newscaster::device::cuda::run({argv + 1, argv + argc});
    } catch (const newscaster::Error& error) {
        fmt::print(stderr, "newscaster_cuda_bench: {}\n", error.what());
        return static_cast<int>(error.code());
    }
}
