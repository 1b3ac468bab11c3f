// newscaster/inspect.h: the plans of a pack's graphs.
#include <fmt/format.h>

#include <array>

#include "device/cuda/graph_plan.h"
#include "newscaster/error.h"
#include "newscaster/inspect.h"
#include "pack/pack.h"

namespace newscaster {

namespace {

constexpr int64_t kLargestBatch = 1024;

int capability_of(const std::string& text) {
    // Those that the generated kernels are made for.
    constexpr std::array kKnown{"7.5", "8.0", "8.6", "8.9", "9.0", "12.0"};
    for (const std::string known : kKnown) {
        if (text != known) continue;
        const auto dot = known.find('.');
        return 10 * std::stoi(known.substr(0, dot)) + std::stoi(known.substr(dot + 1));
    }
    throw Error(ErrorCode::bad_input, fmt::format("compute capability: found \"{}\", wanted 7.5, "
                                                  "8.0, 8.6, 8.9, 9.0 or 12.0",
                                                  text));
}

// Roles that run once per frame, and so take batches.
bool takes_batches(std::string_view role) {
    return role == pack::role::kWarp || role == pack::role::kDecoder;
}

}  // namespace

std::vector<PlannedGraph> plan_pack(const std::filesystem::path& folder,
                                    const PlanOptions& options) {
    if (options.provider != "cuda") {
        throw Error(ErrorCode::bad_input,
                    fmt::format("provider: found \"{}\", wanted cuda, the one that plans",
                                options.provider));
    }
    if (options.precision != "f16" && options.precision != "f32") {
        throw Error(ErrorCode::bad_input,
                    fmt::format("precision: found \"{}\", wanted f32 or f16", options.precision));
    }
    if (options.batch < 1 || options.batch > kLargestBatch) {
        throw Error(ErrorCode::bad_input,
                    fmt::format("batch: found {}, wanted 1 to {}", options.batch, kLargestBatch));
    }
    const int capability = capability_of(options.capability);
    const auto pack = pack::Pack::open(folder);
    std::vector<PlannedGraph> graphs;
    for (const auto& [role, spec] : pack.manifest().graphs) {
        const int64_t batch = takes_batches(role) ? options.batch : 1;
        const auto wanted = device::precision_from_name(options.precision);
        device::Precision precision = wanted;
        pack::GraphSource source;
        try {
            source = pack.graph_source(role, precision, batch);
        } catch (const Error& error) {
            if (error.code() != ErrorCode::device_unavailable) throw;
            precision = device::Precision::f32;
            source = pack.graph_source(role, precision, batch);
        }
        const auto plan =
            device::cuda::plan_graph(source.file, source.input_shapes, precision, capability);
        PlannedGraph graph{role, source.file.filename().string(), {}};
        for (const auto& step : plan.steps) {
            graph.steps.push_back({step.kind, step.label, step.result, step.macs});
        }
        graph.scratch_bytes = plan.scratch_bytes;
        graph.scratch_bytes_unshared = plan.scratch_bytes_unshared;
        graph.constant_bytes = plan.constant_bytes;
        graphs.push_back(std::move(graph));
    }
    return graphs;
}

}  // namespace newscaster
