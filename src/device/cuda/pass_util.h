// What the passes over a graph share.
#pragma once

#include <string>
#include <vector>

#include "device/cuda/graph_ir.h"

namespace newscaster::device::cuda {

// Per value: the nodes that read it, once per input.
[[nodiscard]] std::vector<std::vector<int>> readers_of(const GraphIr& graph);
[[nodiscard]] bool is_output(const GraphIr& graph, int value);

// A dense convolution whose weights and bias are known.
[[nodiscard]] bool is_plain_conv(const GraphIr& graph, const Node& node);
// Its bias, or zeros where it has none.
[[nodiscard]] std::vector<float> bias_of(const GraphIr& graph, const Node& conv);

// New values: constants, and an f32 result that a node will write.
int add_constant(GraphIr& graph, const std::string& name, Tensor tensor);
int add_constant(GraphIr& graph, const std::string& name, const std::vector<int64_t>& values);
int add_constant(GraphIr& graph, const std::string& name, const std::vector<float>& values);
int add_result(GraphIr& graph, const std::string& name, const Shape& shape);

// Reshape of one value into another, by the latter's shape.
[[nodiscard]] Node reshape_node(GraphIr& graph, const std::string& name, int from, int to);

[[nodiscard]] Attribute integers(std::vector<int64_t> values);

}  // namespace newscaster::device::cuda
