// Large convolutions as our own kernels for the tensor cores of compute capability 9.0
// (halo_conv.cuh): the choice of tiles, the packing of weights and the text around the kernel.
#pragma once

#include <optional>
#include <string>

#include "device/cuda/plan.h"

namespace newscaster::device::cuda {

inline constexpr int kHaloCapability = 90;  // wgmma exists there only

// Whether the kernel takes a convolution of this shape (conv.window and conv.upsample).
[[nodiscard]] bool suits_halo_conv(const GraphIr& graph, const Node& node, const ConvStep& conv);

// The step for a convolution whose weights and bias are constants (`node` as the rewriter left it:
// x, w [K, taps, C] in f16, and perhaps a bias), or nothing when its shape does not suit the
// kernel. Adds the packed weights to the plan's constants.
[[nodiscard]] std::optional<Step> halo_conv_step(Plan& plan, int node, const ConvStep& conv,
                                                 const std::string& name);

// A pass over the finished steps: where a single pointwise kernel reads what a halo convolution
// wrote, at the same place, the convolution takes that work along and its own result is not stored.
void fuse_halo_results(Plan& plan);

// What the kernels of these steps share: halo_conv.cuh and the products of their widths; empty when
// there is no such step.
[[nodiscard]] std::string halo_prelude(const Plan& plan);

}  // namespace newscaster::device::cuda
