#include "device/cuda/half_passes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include "device/cuda/geometry.h"

namespace newscaster::device::cuda {

namespace {

constexpr int64_t kLongChannel = 256;  // elements; shorter ones are normalised by one block each
constexpr int64_t kFewOutputs = 32;    // channels that leave a tensor core's tile mostly empty
constexpr int64_t kDeepInput = 64;     // channels from which a product per pixel pays
constexpr int64_t kManyTaps = 25;
constexpr int64_t kMostTapResults = 64;
constexpr int64_t kWideKernel = 5;  // taps along an axis from which shared rows pay
constexpr int64_t kManyMacs = int64_t{1} << 25;

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

// A dense convolution whose weights and bias are known.
bool is_plain_conv(const GraphIr& graph, const Node& node) {
    return node.op == "Conv" && node.integer("group", 1) == 1 && graph.is_constant(node.input(1)) &&
           (node.input(2) == kAbsent || graph.is_constant(node.input(2)));
}

int constant(GraphIr& graph, const std::string& name, Tensor tensor) {
    const DType dtype = tensor.dtype();
    const Shape shape = tensor.shape();
    return graph.add_value(
        {name, dtype, shape, std::make_shared<const Tensor>(std::move(tensor)), kAbsent});
}

int constant(GraphIr& graph, const std::string& name, const std::vector<int64_t>& values) {
    Tensor tensor(DType::i64, {static_cast<int64_t>(values.size())});
    std::ranges::copy(values, tensor.as<int64_t>().begin());
    return constant(graph, name, std::move(tensor));
}

int result(GraphIr& graph, const std::string& name, const Shape& shape) {
    return graph.add_value({name, DType::f32, shape, nullptr, kAbsent});
}

Attribute integers(std::vector<int64_t> values) {
    Attribute attribute;
    attribute.integers = std::move(values);
    return attribute;
}

template <typename T>
std::vector<T> joined(std::vector<T> a, const std::vector<T>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

// A bias, or zeros where a convolution has none.
std::vector<float> bias_of(const GraphIr& graph, const Node& conv) {
    const auto outputs = static_cast<size_t>(graph.values[conv.input(1)].shape[0]);
    if (conv.input(2) == kAbsent) return std::vector<float>(outputs);
    const Tensor bias = graph.values[conv.input(2)].constant->to_f32();
    return {bias.as<float>().begin(), bias.as<float>().end()};
}

// Builds the new list of nodes; values are only ever added.
class Pass {
  public:
    explicit Pass(GraphIr graph) : graph_(std::move(graph)), readers_(readers_of(graph_)) {
        nodes_ = std::exchange(graph_.nodes, {});
    }

    GraphIr run() {
        merge_siblings();
        for (const Node& node : nodes_) {
            if (node.op.empty()) continue;  // merged into another
            if (!split_instance_norm(node) && !widen(node) && !gather_taps(node)) emit(node);
        }
        return std::move(graph_);
    }

  private:
    void emit(Node node) {
        for (const int output : node.outputs) {
            if (output != kAbsent) {
                graph_.values[output].producer = static_cast<int>(graph_.nodes.size());
            }
        }
        graph_.nodes.push_back(std::move(node));
    }

    // Only expressions read it, which find their part of a wider result for free.
    [[nodiscard]] bool feeds_expressions(int value) const {
        if (is_output(graph_, value)) return false;
        return std::ranges::all_of(readers_[value], [&](int reader) {
            const std::string& op = nodes_[reader].op;
            return op == "Add" || op == "Sub" || op == "Mul";
        });
    }

    // Convolutions of one input with the same window, such as the scale and shift of a SPADE
    // layer, become one of twice the width.
    void merge_siblings() {
        for (size_t i = 0; i < nodes_.size(); ++i) {
            if (!is_plain_conv(graph_, nodes_[i]) || !feeds_expressions(nodes_[i].outputs[0])) {
                continue;
            }
            for (size_t k = i + 1; k < nodes_.size(); ++k) {
                if (!is_plain_conv(graph_, nodes_[k]) || !are_siblings(nodes_[i], nodes_[k])) {
                    continue;
                }
                merge(i, k);
                break;
            }
        }
    }

    [[nodiscard]] bool are_siblings(const Node& a, const Node& b) const {
        if (a.input(0) != b.input(0) || !feeds_expressions(b.outputs[0])) return false;
        const Window wa = window_of(graph_, a);
        const Window wb = window_of(graph_, b);
        return wa.kernel == wb.kernel && wa.stride == wb.stride && wa.dilation == wb.dilation &&
               wa.pad_begin == wb.pad_begin && wa.pad_end == wb.pad_end;
    }

    void merge(size_t first, size_t second) {
        const Node a = std::exchange(nodes_[first], {});
        const Node b = std::exchange(nodes_[second], {});
        const auto weights = [&](const Node& node) {
            return graph_.values[node.input(1)].constant->to_f32();
        };
        const Tensor wa = weights(a);
        const Tensor wb = weights(b);
        Shape shape = wa.shape();
        shape[0] += wb.shape()[0];
        Tensor wide(DType::f32, shape);
        std::memcpy(wide.data(), wa.data(), wa.bytes());
        std::memcpy(wide.data() + wa.bytes(), wb.data(), wb.bytes());
        const std::vector<float> bias = joined(bias_of(graph_, a), bias_of(graph_, b));

        const std::string name = a.name + " & " + b.name;
        Shape y = graph_.values[a.outputs[0]].shape;
        y[1] = shape[0];
        const int raw = result(graph_, name, y);
        Node conv{name, "Conv", {a.input(0)}, {raw}, a.attributes};
        conv.inputs.push_back(constant(graph_, name + ":weights", std::move(wide)));
        conv.inputs.push_back(constant(
            graph_, name + ":bias", Tensor::of<float>({shape[0]}, std::span<const float>(bias))));
        Node split{name + ":split", "Split", {raw}, {a.outputs[0], b.outputs[0]}, {}};
        split.inputs.push_back(constant(graph_, name + ":sizes", {wa.shape()[0], wb.shape()[0]}));
        split.attributes["axis"].integer = 1;
        nodes_[first] = conv;
        nodes_.insert(nodes_.begin() + static_cast<std::ptrdiff_t>(first) + 1, split);
        readers_ = readers_of_nodes();
    }

    [[nodiscard]] std::vector<std::vector<int>> readers_of_nodes() {
        graph_.nodes.swap(nodes_);
        auto readers = readers_of(graph_);
        graph_.nodes.swap(nodes_);
        return readers;
    }

    bool split_instance_norm(const Node& node) {
        const Shape& x = graph_.values[node.input(0)].shape;
        if (node.op != "InstanceNormalization" || x.size() < 4) return false;
        if (element_count(x) / (x[0] * x[1]) < kLongChannel) return false;
        if (!graph_.is_constant(node.input(1)) || !graph_.is_constant(node.input(2))) return false;
        const int stats = result(graph_, node.name + ":stats", {x[0], 2, x[1]});
        emit({node.name, "InstanceStats", node.inputs, {stats}, node.attributes});
        emit({node.name, "InstanceApply", {node.input(0), stats}, node.outputs, {}});
        return true;
    }

    // Conv with next to no outputs: each tap's product with every pixel, then their sum.
    bool gather_taps(const Node& node) {
        if (!is_plain_conv(graph_, node)) return false;
        const Shape w = graph_.values[node.input(1)].shape;
        if (w.size() != 4 || w[1] < kDeepInput || w[2] * w[3] < kManyTaps ||
            w[0] * w[2] * w[3] > kMostTapResults) {
            return false;
        }
        const Window window = window_of(graph_, node);
        for (size_t axis = 0; axis < 2; ++axis) {
            if (window.stride[axis] != 1 || window.dilation[axis] != 1) return false;
        }
        const Tensor source = graph_.values[node.input(1)].constant->to_f32();
        const int64_t taps = w[2] * w[3];
        Tensor weights(DType::f32, {w[0] * taps, w[1], 1, 1});
        for (int64_t k = 0; k < w[0]; ++k) {
            for (int64_t c = 0; c < w[1]; ++c) {
                for (int64_t tap = 0; tap < taps; ++tap) {
                    weights.as<float>()[(k * taps + tap) * w[1] + c] =
                        source.as<float>()[(k * w[1] + c) * taps + tap];
                }
            }
        }
        const Shape& x = graph_.values[node.input(0)].shape;
        const std::string name = node.name + ":taps";
        const int raw = result(graph_, name, {x[0], w[0] * taps, x[2], x[3]});
        Node conv{name, "Conv", {node.input(0)}, {raw}, {}};
        conv.inputs.push_back(constant(graph_, name + ":weights", std::move(weights)));
        emit(std::move(conv));
        const std::vector<float> bias = bias_of(graph_, node);
        Node sum{node.name, "TapSum", {raw}, node.outputs, {}};
        sum.inputs.push_back(constant(graph_, node.name + ":bias",
                                      Tensor::of<float>({w[0]}, std::span<const float>(bias))));
        sum.attributes["kernel_shape"] = integers(window.kernel);
        sum.attributes["pads"] = integers(joined(window.pad_begin, window.pad_end));
        emit(std::move(sum));
        return true;
    }

    // Conv with K outputs -> conv of stride 2 with 4 K outputs, for the 2x2 positions that start at
    // each even one, with kernels a tap longer and weights shifted by the position.
    bool widen(const Node& node) {
        if (!is_plain_conv(graph_, node)) return false;
        const Shape w = graph_.values[node.input(1)].shape;
        const Shape y = graph_.values[node.outputs[0]].shape;
        if (w.size() != 5 || w[0] > kFewOutputs) return false;
        const Window window = window_of(graph_, node);
        for (const size_t axis : {1U, 2U}) {
            if (window.kernel[axis] < kWideKernel || window.stride[axis] != 1 ||
                window.dilation[axis] != 1 || y[axis + 2] % 2 != 0) {
                return false;
            }
        }
        if (element_count(y) * (element_count(w) / w[0]) < kManyMacs) return false;

        const Shape coarse{y[0], 4 * y[1], y[2], y[3] / 2, y[4] / 2};
        const int raw = result(graph_, node.name + ":2x2", coarse);
        Node conv{node.name + ":2x2", "Conv", {node.input(0)}, {raw}, {}};
        conv.inputs.push_back(constant(graph_, conv.name + ":weights", shifted_weights(node)));
        std::vector<float> bias;
        for (int copy = 0; copy < 4; ++copy) bias = joined(std::move(bias), bias_of(graph_, node));
        conv.inputs.push_back(
            constant(graph_, conv.name + ":bias",
                     Tensor::of<float>({4 * w[0]}, std::span<const float>(bias))));
        conv.attributes["strides"] = integers({window.stride[0], 2, 2});
        conv.attributes["dilations"] = integers({window.dilation[0], 1, 1});
        conv.attributes["pads"] = integers(joined(window.pad_begin, window.pad_end));
        emit(std::move(conv));

        const std::string name = node.name + ":unfold";
        const Shape parts{y[0], 2, 2, y[1], y[2], y[3] / 2, y[4] / 2};
        const Shape woven{y[0], y[1], y[2], y[3] / 2, 2, y[4] / 2, 2};
        const int apart = result(graph_, name, parts);
        emit({name, "Reshape", {raw, constant(graph_, name + ":parts", parts)}, {apart}, {}});
        const int turned = result(graph_, name, woven);
        Node turn{name, "Transpose", {apart}, {turned}, {}};
        turn.attributes["perm"] = integers({0, 3, 4, 5, 1, 6, 2});
        emit(std::move(turn));
        emit({name, "Reshape", {turned, constant(graph_, name + ":shape", y)}, node.outputs, {}});
        return true;
    }

    // [K, C, d, h, w] -> [(2, 2, K), C, d, h + 1, w + 1].
    [[nodiscard]] Tensor shifted_weights(const Node& node) const {
        const Tensor source = graph_.values[node.input(1)].constant->to_f32();
        const Shape& w = source.shape();
        Tensor target(DType::f32, {4 * w[0], w[1], w[2], w[3] + 1, w[4] + 1});
        const auto from = source.as<float>();
        const auto to = target.as<float>();
        const int64_t lines = w[0] * w[1] * w[2];  // (K, C, d) planes of taps
        for (int64_t position = 0; position < 4; ++position) {
            const int64_t dy = position / 2;
            const int64_t dx = position % 2;
            for (int64_t line = 0; line < lines; ++line) {
                for (int64_t i = 0; i < w[3]; ++i) {
                    const int64_t row = ((position * lines + line) * (w[3] + 1) + i + dy);
                    std::copy_n(from.begin() + (line * w[3] + i) * w[4], w[4],
                                to.begin() + row * (w[4] + 1) + dx);
                }
            }
        }
        return target;
    }

    GraphIr graph_;
    std::vector<std::vector<int>> readers_;
    std::vector<Node> nodes_;
};

}  // namespace

GraphIr pass_for_half(GraphIr graph) {
    return Pass(std::move(graph)).run();
}

}  // namespace newscaster::device::cuda
