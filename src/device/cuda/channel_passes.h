// Passes that choose the order of channels, so that kernels find neighbours side by side. Orders of
// values are changed only where constant weights can follow.
#pragma once

#include "device/cuda/graph_ir.h"

namespace newscaster::device::cuda {

// A Reshape that merges axes A and B into channels, read by convolutions alone (directly or through
// concatenations):
//  - of a concatenation along B: becomes a concatenation of merged parts, the widest first, so that
//    a group of neighbouring channels comes from one part;
//  - of sampled pixels: merges (B, A) instead, as a sampler of channels-last pixels has all of A at
//    hand for each B.
[[nodiscard]] GraphIr order_channels(GraphIr graph);

}  // namespace newscaster::device::cuda
