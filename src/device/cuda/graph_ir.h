// The typed graph between the ONNX file and the kernels: every shape known, constants folded.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "device/cuda/onnx_reader.h"

namespace newscaster::device::cuda {

inline constexpr int kAbsent = -1;  // an optional input that was left out

struct Value {
    std::string name;
    DType dtype = DType::f32;
    Shape shape;
    TensorPtr constant;      // filled when known at load time
    int producer = kAbsent;  // index of the node; kAbsent for inputs and constants

    [[nodiscard]] int64_t count() const { return element_count(shape); }
};

struct Node {
    std::string name;
    std::string op;
    std::vector<int> inputs;  // value indices or kAbsent
    std::vector<int> outputs;
    Attributes attributes;

    [[nodiscard]] int input(size_t i) const { return i < inputs.size() ? inputs[i] : kAbsent; }
    [[nodiscard]] int64_t integer(std::string_view key, int64_t otherwise) const;
    [[nodiscard]] float number(std::string_view key, float otherwise) const;
    [[nodiscard]] std::string text(std::string_view key, const std::string& otherwise) const;
    [[nodiscard]] std::vector<int64_t> integers(std::string_view key,
                                                const std::vector<int64_t>& otherwise) const;
};

struct GraphIr {
    std::string origin;  // file name for messages
    int64_t opset = 0;
    std::vector<Value> values;
    std::vector<Node> nodes;  // in an order that can be executed
    std::vector<int> inputs;
    std::vector<int> outputs;

    int add_value(Value value);
    [[nodiscard]] bool is_constant(int value) const {
        return value != kAbsent && values[value].constant != nullptr;
    }
    // Integers of a constant input, e.g. axes; throws Error(bad_pack) when it is not constant.
    [[nodiscard]] std::vector<int64_t> constant_integers(const Node& node, size_t input) const;
    // "file: node 'n' (Op[1,3]...): found FAULT, wanted WANTED" as Error(bad_pack).
    [[noreturn]] void fail(const Node& node, const std::string& found,
                           const std::string& wanted) const;
};

// Drops the nodes whose results nobody reads, which would cost time and memory, and notes every
// value's producer.
void tidy(GraphIr& graph);

// Constant tensors as plain numbers.
[[nodiscard]] std::vector<int64_t> to_integers(const Tensor& tensor);

[[nodiscard]] Shape broadcast_shapes(const Shape& a, const Shape& b);  // throws Error(bad_pack)

// Resolves names, fixes the input shapes, folds constants and infers every other shape.
// Throws Error(bad_pack) naming node, operator and shapes for anything that is not supported.
[[nodiscard]] GraphIr build_graph(const OnnxModel& model, const std::string& origin,
                                  const std::map<std::string, Shape>& input_shapes);

}  // namespace newscaster::device::cuda
