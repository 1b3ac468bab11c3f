// Rewrites of a graph that runs in f16: the same function in a form that the GPU runs faster.
#pragma once

#include "device/cuda/graph_ir.h"

namespace newscaster::device::cuda {

// Operators of our own that the passes introduce:
//   InstanceStats(x, scale, bias) -> [N, 2, C]: factor and shift of each channel
//   InstanceApply(x, stats): x * factor + shift, what is left of InstanceNormalization
//   TapSum(taps, bias): sums what a convolution's taps made of their own pixels
//
// Passes: convolutions of one input become one; InstanceNormalization is split so that its second
// half joins the expression that follows; a deep convolution with few outputs computes 2x2
// positions at once; a convolution with next to no outputs becomes a product per pixel with all
// taps, whose results are then gathered.
[[nodiscard]] GraphIr pass_for_half(GraphIr graph);

}  // namespace newscaster::device::cuda
