// From the rewritten graph to a plan: which values are stored, and one kernel per stored value.
#pragma once

#include "device/cuda/plan.h"
#include "device/cuda/rewriting.h"

namespace newscaster::device::cuda {

// Rewrites, fuses, generates kernels and places memory. precision: f32 or f16. capability: of the
// GPU, e.g. 90.
[[nodiscard]] Plan make_plan(const GraphIr& graph, Precision precision, int capability);

// What a kernel source needs before the kernels; compiled with NVRTC.
[[nodiscard]] const char* kernel_prelude();

// One kernel: every element of a stored value / one block per row.
[[nodiscard]] Step pointwise_step(const Plan& plan, int value, const std::string& name);
[[nodiscard]] Step row_step(const Plan& plan, int node, const std::string& name);
[[nodiscard]] Step instance_stats_step(const Plan& plan, int node, const std::string& name);
[[nodiscard]] Step short_softmax_step(const Plan& plan, int node, const std::string& name);

}  // namespace newscaster::device::cuda
