// A pass that multiplies weights where two convolutions follow each other.
#pragma once

#include "device/cuda/graph_ir.h"

namespace newscaster::device::cuda {

// Conv1x1(m + Conv(x)) -> Conv1x1(m) + Conv'(x), where Conv' has the product of both weights: worth
// it when the 1x1 convolution has fewer outputs than Conv, since Conv' has no more than that. (The
// shortcut of a SPADE block: the shift of its normalisation is a convolution.)
[[nodiscard]] GraphIr compose_convs(GraphIr graph);

}  // namespace newscaster::device::cuda
