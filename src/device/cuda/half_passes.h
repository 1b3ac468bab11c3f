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
// taps, whose results are then gathered; what repeats pixels (nearest Resize) is not made for those
// who can do without: statistics, and convolutions of ours, which then carry kUpsample.
// own_convs: convolutions of our own (halo_conv.h) run on this device.
[[nodiscard]] GraphIr pass_for_half(GraphIr graph, bool own_convs);

// Attribute of Conv: it is made for the convolution kernels, however small and whatever its
// results.
inline constexpr const char* kForLibraries = "for_libraries";

// Attribute of Conv: the input is read as if each position stood this often in y and x.
inline constexpr const char* kUpsample = "upsample";

}  // namespace newscaster::device::cuda
