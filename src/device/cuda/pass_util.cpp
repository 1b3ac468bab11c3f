#include "device/cuda/pass_util.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace newscaster::device::cuda {

std::vector<std::vector<int>> readers_of(const GraphIr& graph) {
    std::vector<std::vector<int>> readers(graph.values.size());
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
        for (const int input : graph.nodes[i].inputs) {
            if (input != kAbsent) readers[input].push_back(static_cast<int>(i));
        }
    }
    return readers;
}

bool is_output(const GraphIr& graph, int value) {
    return std::ranges::find(graph.outputs, value) != graph.outputs.end();
}

bool is_plain_conv(const GraphIr& graph, const Node& node) {
    return node.op == "Conv" && node.integer("group", 1) == 1 && graph.is_constant(node.input(1)) &&
           (node.input(2) == kAbsent || graph.is_constant(node.input(2)));
}

std::vector<float> bias_of(const GraphIr& graph, const Node& conv) {
    const auto outputs = static_cast<size_t>(graph.values[conv.input(1)].shape[0]);
    if (conv.input(2) == kAbsent) return std::vector<float>(outputs);
    const Tensor bias = graph.values[conv.input(2)].constant->to_f32();
    return {bias.as<float>().begin(), bias.as<float>().end()};
}

int add_constant(GraphIr& graph, const std::string& name, Tensor tensor) {
    const DType dtype = tensor.dtype();
    const Shape shape = tensor.shape();
    return graph.add_value(
        {name, dtype, shape, std::make_shared<const Tensor>(std::move(tensor)), kAbsent});
}

int add_constant(GraphIr& graph, const std::string& name, const std::vector<int64_t>& values) {
    Tensor tensor(DType::i64, {static_cast<int64_t>(values.size())});
    std::ranges::copy(values, tensor.as<int64_t>().begin());
    return add_constant(graph, name, std::move(tensor));
}

int add_constant(GraphIr& graph, const std::string& name, const std::vector<float>& values) {
    return add_constant(
        graph, name,
        Tensor::of<float>({static_cast<int64_t>(values.size())}, std::span<const float>(values)));
}

int add_result(GraphIr& graph, const std::string& name, const Shape& shape) {
    return graph.add_value({name, DType::f32, shape, nullptr, kAbsent});
}

Node reshape_node(GraphIr& graph, const std::string& name, int from, int to) {
    const int shape = add_constant(graph, name + ":shape", graph.values[to].shape);
    return {name, "Reshape", {from, shape}, {to}, {}};
}

Attribute integers(std::vector<int64_t> values) {
    Attribute attribute;
    attribute.integers = std::move(values);
    return attribute;
}

}  // namespace newscaster::device::cuda
