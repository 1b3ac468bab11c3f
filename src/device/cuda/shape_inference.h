// Types and shapes of a node's outputs from its inputs.
#pragma once

#include <utility>
#include <vector>

#include "device/cuda/graph_ir.h"

namespace newscaster::device::cuda {

using TypedShape = std::pair<DType, Shape>;

// Throws Error(bad_pack) naming the node for unknown operators and impossible shapes.
[[nodiscard]] std::vector<TypedShape> infer_outputs(const GraphIr& graph, const Node& node);

// DType of ONNX's number for it; throws Error(bad_pack) naming the node.
[[nodiscard]] DType dtype_of_onnx(const GraphIr& graph, const Node& node, int64_t type);

}  // namespace newscaster::device::cuda
