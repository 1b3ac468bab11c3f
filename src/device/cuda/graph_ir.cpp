#include "device/cuda/graph_ir.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "newscaster/error.h"

namespace newscaster::device::cuda {

int64_t Node::integer(std::string_view key, int64_t otherwise) const {
    const auto found = attributes.find(key);
    return found == attributes.end() ? otherwise : found->second.integer;
}

float Node::number(std::string_view key, float otherwise) const {
    const auto found = attributes.find(key);
    return found == attributes.end() ? otherwise : found->second.number;
}

std::string Node::text(std::string_view key, const std::string& otherwise) const {
    const auto found = attributes.find(key);
    return found == attributes.end() ? otherwise : found->second.text;
}

std::vector<int64_t> Node::integers(std::string_view key,
                                    const std::vector<int64_t>& otherwise) const {
    const auto found = attributes.find(key);
    return found == attributes.end() ? otherwise : found->second.integers;
}

int GraphIr::add_value(Value value) {
    values.push_back(std::move(value));
    return static_cast<int>(values.size()) - 1;
}

std::vector<int64_t> GraphIr::constant_integers(const Node& node, size_t input) const {
    const int value = node.input(input);
    if (!is_constant(value)) {
        fail(node, fmt::format("an input {} that varies", input), "a constant");
    }
    return to_integers(*values[value].constant);
}

void GraphIr::fail(const Node& node, const std::string& found, const std::string& wanted) const {
    std::string shapes;
    for (const int input : node.inputs) {
        shapes += (shapes.empty() ? "" : ", ") +
                  (input == kAbsent ? std::string("-") : to_string(values[input].shape));
    }
    throw Error(ErrorCode::bad_pack,
                fmt::format("{}: node '{}' ({} of {}): found {}, wanted {}", origin, node.name,
                            node.op, shapes, found, wanted));
}

std::vector<int64_t> to_integers(const Tensor& tensor) {
    std::vector<int64_t> result;
    if (tensor.dtype() == DType::i64) {
        const auto values = tensor.as<int64_t>();
        result.assign(values.begin(), values.end());
    } else if (tensor.dtype() == DType::i32) {
        const auto values = tensor.as<int32_t>();
        result.assign(values.begin(), values.end());
    } else {
        throw Error(ErrorCode::bad_pack,
                    fmt::format("graph: found a constant of type {} where integers are expected",
                                name_of(tensor.dtype())));
    }
    return result;
}

void tidy(GraphIr& graph) {
    std::set<int> wanted(graph.outputs.begin(), graph.outputs.end());
    std::vector<Node> kept;
    for (size_t i = graph.nodes.size(); i > 0; --i) {
        Node& node = graph.nodes[i - 1];
        const bool used =
            std::ranges::any_of(node.outputs, [&](int output) { return wanted.contains(output); });
        if (!used) continue;
        wanted.insert(node.inputs.begin(), node.inputs.end());
        kept.push_back(std::move(node));
    }
    std::ranges::reverse(kept);
    graph.nodes = std::move(kept);
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
        for (const int output : graph.nodes[i].outputs) {
            if (output != kAbsent) graph.values[output].producer = static_cast<int>(i);
        }
    }
}

Shape broadcast_shapes(const Shape& a, const Shape& b) {
    Shape result(std::max(a.size(), b.size()));
    for (size_t i = 0; i < result.size(); ++i) {
        const int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
        const int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
        if (x != y && x != 1 && y != 1) {
            throw Error(ErrorCode::bad_pack, fmt::format("shapes {} and {} do not broadcast",
                                                         to_string(a), to_string(b)));
        }
        result[result.size() - 1 - i] = x == 1 ? y : x;
    }
    return result;
}

}  // namespace newscaster::device::cuda
