// newscaster pack info|verify.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

#include "commands.h"
#include "data_paths.h"
#include "newscaster/error.h"
#include "newscaster/inspect.h"

namespace newscaster::cli {

namespace {

nlohmann::json to_json(const PackInfo& info) {
    auto graphs = nlohmann::json::array();
    for (const auto& graph : info.graphs) {
        graphs.push_back({{"role", graph.role},
                          {"file", graph.file},
                          {"bytes", graph.bytes},
                          {"precisions", graph.precisions},
                          {"inputs", graph.inputs},
                          {"outputs", graph.outputs}});
    }
    return {{"name", info.name},
            {"version", info.version},
            {"title", info.title},
            {"license", info.license},
            {"avatar_key", info.avatar_key},
            {"fps", fmt::format("{}/{}", info.fps.num, info.fps.den)},
            {"sample_rate_hz", info.sample_rate_hz},
            {"motion_dims", info.motion_dims},
            {"window_frames", info.window_frames},
            {"keypoints", info.keypoints},
            {"crop_px", info.crop_px},
            {"default_steps", info.default_steps},
            {"emotions", info.emotions},
            {"graphs", graphs}};
}

}  // namespace

int run(const PackInfoRequest& request, const GlobalOptions& global) {
    const PackInfo info = describe_pack(find_data("packs", request.pack));
    if (global.json) {
        fmt::print("{}\n", to_json(info).dump(2));
        return 0;
    }
    fmt::print("{} {}: {}\nlicence      {}\navatar key   {}\n", info.name, info.version, info.title,
               info.license, info.avatar_key);
    fmt::print("audio        {} Hz, {}/{} frames/s\n", info.sample_rate_hz, info.fps.num,
               info.fps.den);
    fmt::print("motion       {} dims, windows of {} frames, {} diffusion steps\n", info.motion_dims,
               info.window_frames, info.default_steps);
    fmt::print("renderer     {} keypoints, crop {} px\n", info.keypoints, info.crop_px);
    if (!info.emotions.empty()) fmt::print("emotions     {}\n", fmt::join(info.emotions, ", "));
    for (const auto& graph : info.graphs) {
        fmt::print("\n{}  {} ({:.1f} MB, {})\n  in   {}\n  out  {}\n", graph.role, graph.file,
                   static_cast<double>(graph.bytes) / 1e6, fmt::join(graph.precisions, ", "),
                   fmt::join(graph.inputs, "\n       "), fmt::join(graph.outputs, "\n       "));
    }
    return 0;
}

int run(const PackVerifyRequest& request, const GlobalOptions& global) {
    const auto folder = find_data("packs", request.pack);
    const auto faults = verify_pack(folder);
    if (global.json) {
        fmt::print(
            "{}\n",
            nlohmann::json{{"pack", folder.string()}, {"sound", faults.empty()}, {"faults", faults}}
                .dump(2));
    } else if (faults.empty()) {
        fmt::print("{}: sound\n", folder.string());
    } else {
        for (const auto& fault : faults) fmt::print("{}\n", fault);
    }
    return faults.empty() ? 0 : static_cast<int>(ErrorCode::bad_pack);
}

namespace {

nlohmann::json to_json(const PlannedGraph& graph) {
    auto steps = nlohmann::json::array();
    for (const PlanStep& step : graph.steps) {
        steps.push_back({{"kind", step.kind},
                         {"label", step.label},
                         {"result", step.result},
                         {"macs", step.macs}});
    }
    return {{"role", graph.role},
            {"file", graph.file},
            {"steps", steps},
            {"scratch_bytes", graph.scratch_bytes},
            {"scratch_bytes_unshared", graph.scratch_bytes_unshared},
            {"constant_bytes", graph.constant_bytes}};
}

void print(const PlannedGraph& graph) {
    constexpr double kMega = 1e6;
    fmt::print("{}  {}: {} steps, scratch {:.1f} MB ({:.1f} unshared), weights {:.1f} MB\n",
               graph.role, graph.file, graph.steps.size(),
               static_cast<double>(graph.scratch_bytes) / kMega,
               static_cast<double>(graph.scratch_bytes_unshared) / kMega,
               static_cast<double>(graph.constant_bytes) / kMega);
    for (size_t i = 0; i < graph.steps.size(); ++i) {
        const PlanStep& step = graph.steps[i];
        const std::string macs =
            step.macs == 0 ? "" : fmt::format("{:.2f} GMAC", static_cast<double>(step.macs) / 1e9);
        fmt::print("{:5}  {:12} {:12} {:38} {}\n", i, step.kind, macs, step.result, step.label);
    }
    fmt::print("\n");
}

}  // namespace

int run(const PackPlanRequest& request, const GlobalOptions& global) {
    const auto graphs =
        plan_pack(find_data("packs", request.pack), {.provider = request.provider,
                                                     .precision = request.precision,
                                                     .batch = request.batch_size,
                                                     .capability = request.capability});
    if (global.json) {
        auto list = nlohmann::json::array();
        for (const PlannedGraph& graph : graphs) list.push_back(to_json(graph));
        fmt::print("{}\n", list.dump(2));
        return 0;
    }
    for (const PlannedGraph& graph : graphs) print(graph);
    return 0;
}

}  // namespace newscaster::cli
