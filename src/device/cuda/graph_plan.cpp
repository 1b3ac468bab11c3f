#include "device/cuda/graph_plan.h"

#include <fmt/format.h>

#include <set>
#include <variant>

#include "device/cuda/fusion.h"
#include "device/cuda/graph_ir.h"
#include "device/cuda/halo_conv.h"
#include "device/cuda/onnx_reader.h"

namespace newscaster::device::cuda {

namespace {

// Multiply-adds of a convolution that a library runs: the reads are x, w [K, taps, C], [bias].
int64_t conv_macs(const Plan& plan, const Step& step) {
    const Shape& weights = plan.storage[step.reads[1]].extents;
    return plan.storage[step.writes].elements() * weights[1] * weights[2];
}

PlannedStep planned(const Plan& plan, const Step& step) {
    const Storage& storage = plan.storage[step.writes];
    PlannedStep result;
    result.label = step.label;
    result.result = fmt::format("{}{}{}", name_of(storage.dtype),
                                to_string(plan.graph.values[step.writes].shape),
                                storage.channels_last ? " channels last" : "");
    if (const auto* kernel = std::get_if<KernelStep>(&step.work)) {
        result.kind = kernel->box ? "tensor core" : "kernel";
        result.macs = kernel->macs;
    } else if (const auto* gemm = std::get_if<GemmStep>(&step.work)) {
        result.kind = "cublaslt";
        result.macs = gemm->m * gemm->n * gemm->k * gemm->batch;
    } else {
        result.kind = "cudnn";
        result.macs = conv_macs(plan, step);
    }
    return result;
}

}  // namespace

GraphPlan plan_graph(const std::filesystem::path& onnx_file,
                     const std::map<std::string, Shape>& input_shapes, Precision precision,
                     int capability) {
    const Plan plan = make_plan(build_graph(read_onnx(onnx_file), onnx_file.string(), input_shapes),
                                precision, capability);
    GraphPlan result;
    std::set<int> constants;
    for (const Step& step : plan.steps) {
        result.steps.push_back(planned(plan, step));
        if (const auto* kernel = std::get_if<KernelStep>(&step.work)) {
            result.source_bytes += kernel->source.size();
        }
        for (const int read : step.reads) {
            if (plan.storage[read].place == Place::constant && constants.insert(read).second) {
                result.constant_bytes += plan.storage[read].bytes();
            }
        }
    }
    result.scratch_bytes = plan.arena_bytes;
    result.scratch_bytes_unshared = plan.arena_bytes_unshared;
    return result;
}

}  // namespace newscaster::device::cuda
