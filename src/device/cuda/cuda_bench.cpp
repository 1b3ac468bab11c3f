// Times graphs on the GPU: newscaster_cuda_bench PRECISION BATCH FILE.onnx... prints one JSON line
// per file. Inputs are random; a time is one replay including its launch, until the stream is idle.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <random>
#include <vector>

#include "device/cuda/cuda_device.h"
#include "device/cuda/fusion.h"
#include "device/cuda/onnx_reader.h"
#include "newscaster/error.h"

namespace newscaster::device::cuda {
namespace {

constexpr int kWarmUp = 20;
constexpr int kRepeats = 100;
constexpr int64_t kSignal = 15360;

double milliseconds(std::chrono::steady_clock::duration span) {
    return std::chrono::duration<double, std::milli>(span).count();
}

void bind_random_inputs(Device& device, Stream& stream, const Graph& graph, Session& session) {
    std::mt19937 random(1);
    std::uniform_real_distribution<float> values(-0.5F, 0.5F);
    for (const auto& info : graph.inputs()) {
        const auto host = device.allocate(info, Location::pinned);
        if (info.dtype == DType::f32)
            std::ranges::generate(host->host_f32(), [&] { return values(random); });
        const auto target = device.allocate(info, Location::device);
        device.copy(*host, *target, stream);
        stream.synchronize();
        session.bind(info.name, target);
    }
}

nlohmann::json measure(Device& device, const std::string& file, Precision precision,
                       int64_t batch) {
    GraphOptions options{.precision = precision, .concurrency = 1, .input_shapes = {}};
    for (const auto& info : device.inspect(file).inputs) {
        Shape shape = info.shape;
        for (auto& extent : shape) {
            // The dynamic extent of a signal is its length: 0.96 s at 16 kHz.
            if (extent < 0) extent = info.name == "wav" ? kSignal : batch;
        }
        options.input_shapes[info.name] = shape;
    }
    if (std::getenv("NEWSCASTER_CUDA_PLAN") != nullptr) {
        const auto plan =
            make_plan(build_graph(read_onnx(file), file, options.input_shapes), precision);
        fmt::print(stderr, "{}\n{}", file, describe(plan));
    }
    const auto before = std::chrono::steady_clock::now();
    const auto graph = device.load(file, "", options);
    const double load_ms = milliseconds(std::chrono::steady_clock::now() - before);
    const auto session = graph->make_session();
    const auto stream = device.make_stream();
    bind_random_inputs(device, *stream, *graph, *session);
    std::vector<double> times;
    for (int i = 0; i < kWarmUp + kRepeats; ++i) {
        const auto start = std::chrono::steady_clock::now();
        session->run(*stream);
        stream->synchronize();
        if (i >= kWarmUp) times.push_back(milliseconds(std::chrono::steady_clock::now() - start));
    }
    std::ranges::sort(times);
    const double median = times[times.size() / 2];
    return {{"graph", file},
            {"precision", name_of(precision)},
            {"batch", batch},
            {"median_ms", median},
            {"ms_per_frame", median / static_cast<double>(batch)},
            {"p10_ms", times[times.size() / 10]},
            {"p90_ms", times[times.size() * 9 / 10]},
            {"repeats", kRepeats},
            {"load_ms", load_ms},
            {"gpu", device.info().name},
            {"runtime", device.info().runtime}};
}

}  // namespace
}  // namespace newscaster::device::cuda

int main(int argc, char** argv) {
    using namespace newscaster;
    if (argc < 4) {
        fmt::print(stderr, "newscaster_cuda_bench f32|f16 BATCH FILE.onnx...\n");
        return 2;
    }
    try {
        const auto device = device::open_cuda_device({});
        for (int i = 3; i < argc; ++i) {
            const auto precision = device::precision_from_name(argv[1]);
            fmt::print(
                "{}\n",
                device::cuda::measure(*device, argv[i], precision, std::atoll(argv[2])).dump());
        }
    } catch (const Error& error) {
        fmt::print(stderr, "{}\n", error.what());
        return static_cast<int>(error.code());
    }
    return 0;
}
