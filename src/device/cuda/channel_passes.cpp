#include "device/cuda/channel_passes.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include "device/cuda/geometry.h"
#include "device/cuda/pass_util.h"
#include "device/cuda/plan.h"

namespace newscaster::device::cuda {

namespace {

using Order = std::vector<int64_t>;  // per new channel: the old one

class ChannelOrder {
  public:
    explicit ChannelOrder(GraphIr graph) : graph_(std::move(graph)), readers_(readers_of(graph_)) {}

    GraphIr run() {
        const size_t count = graph_.nodes.size();
        std::vector<std::vector<Node>> instead(count);
        for (size_t i = 0; i < count; ++i) {
            if (merges_channels(graph_.nodes[i]) && can_follow(graph_.nodes[i].outputs[0])) {
                instead[i] = reordered(graph_.nodes[i]);
            }
        }
        std::vector<Node> nodes;
        for (size_t i = 0; i < count; ++i) {
            if (instead[i].empty()) {
                nodes.push_back(std::move(graph_.nodes[i]));
            } else {
                std::ranges::move(instead[i], std::back_inserter(nodes));
            }
        }
        graph_.nodes = std::move(nodes);
        tidy(graph_);
        return std::move(graph_);
    }

  private:
    // [N, A, B, rest] -> [N, A * B, rest]
    [[nodiscard]] bool merges_channels(const Node& node) const {
        if (node.op != "Reshape") return false;
        const Shape& x = graph_.values[node.input(0)].shape;
        const Shape& y = graph_.values[node.outputs[0]].shape;
        return y.size() >= 3 && x.size() == y.size() + 1 && x[0] == y[0] && x[1] * x[2] == y[1] &&
               x[1] > 1 && x[2] > 1 && std::equal(x.begin() + 3, x.end(), y.begin() + 2);
    }

    [[nodiscard]] const Node* producer(int value) const {
        const int index = graph_.values[value].producer;
        return index == kAbsent ? nullptr : &graph_.nodes[index];
    }

    [[nodiscard]] bool is_channel_concat(const Node& node) const {
        const auto rank = graph_.values[node.outputs[0]].shape.size();
        return node.op == "Concat" && normal_axis(graph_, node, node.integer("axis", 0), rank) == 1;
    }

    // Whether everything that reads the value can do so in another order of channels.
    [[nodiscard]] bool can_follow(int value) const {
        return !is_output(graph_, value) && !readers_[value].empty() &&
               std::ranges::all_of(readers_[value], [&](int reader) {
                   const Node& node = graph_.nodes[reader];
                   if (is_channel_concat(node)) {
                       return std::ranges::count(node.inputs, value) == 1 &&
                              can_follow(node.outputs[0]);
                   }
                   return is_plain_conv(graph_, node) && node.input(0) == value;
               });
    }

    void follow(int value, const Order& order) {
        for (const int reader : readers_[value]) {
            Node& node = graph_.nodes[reader];
            if (node.op == "Conv") {
                node.inputs[1] = ordered_weights(node.input(1), order);
                continue;
            }
            Order whole(static_cast<size_t>(graph_.values[node.outputs[0]].shape[1]));
            std::iota(whole.begin(), whole.end(), 0);
            int64_t first = 0;
            for (size_t i = 0; node.inputs[i] != value; ++i) {
                first += graph_.values[node.inputs[i]].shape[1];
            }
            for (size_t i = 0; i < order.size(); ++i) {
                whole[static_cast<size_t>(first) + i] = first + order[i];
            }
            follow(node.outputs[0], whole);
        }
    }

    // [K, C, taps...] with C in the new order.
    int ordered_weights(int weights, const Order& order) {
        const Value info = graph_.values[weights];
        const Tensor& source = *info.constant;
        Tensor target(source.dtype(), source.shape());
        const int64_t plane =
            static_cast<int64_t>(source.bytes()) / (source.shape()[0] * source.shape()[1]);
        for (int64_t k = 0; k < source.shape()[0]; ++k) {
            const int64_t row = k * source.shape()[1];
            for (size_t c = 0; c < order.size(); ++c) {
                std::memcpy(target.data() + (row + static_cast<int64_t>(c)) * plane,
                            source.data() + (row + order[c]) * plane, static_cast<size_t>(plane));
            }
        }
        return add_constant(graph_, info.name + ":ordered", std::move(target));
    }

    // What replaces the Reshape; nothing when its order is good as it is.
    std::vector<Node> reordered(const Node& node) {
        const int from = node.input(0);
        const Node* source = producer(from);
        if (source == nullptr) return {};
        if (source->op == "Concat" && normal_axis(graph_, *source, source->integer("axis", 0),
                                                  graph_.values[from].shape.size()) == 2) {
            return merged_parts(node, *source);
        }
        const int64_t wide = graph_.values[from].shape[1];
        if (source->op.starts_with("GridSample") && wide % kChannelPad == 0) {
            return turned(node);
        }
        return {};
    }

    std::vector<Node> merged_parts(const Node& node, const Node& concat) {
        const int64_t rows = graph_.values[node.input(0)].shape[1];
        const int64_t across = graph_.values[node.input(0)].shape[2];
        struct Part {
            int value;
            int64_t first, count;
        };
        std::vector<Part> parts;
        int64_t first = 0;
        for (const int input : concat.inputs) {
            const int64_t count = graph_.values[input].shape[2];
            parts.push_back({input, first, count});
            first += count;
        }
        std::ranges::stable_sort(parts, std::ranges::greater{}, &Part::count);
        std::vector<Node> nodes;
        Node joined{node.name, "Concat", {}, node.outputs, {}};
        joined.attributes["axis"].integer = 1;
        Order order;
        for (const Part& part : parts) {
            Shape shape = graph_.values[node.outputs[0]].shape;
            shape[1] = rows * part.count;
            const int merged =
                add_result(graph_, graph_.values[part.value].name + ":merged", shape);
            nodes.push_back(reshape_node(graph_, node.name, part.value, merged));
            joined.inputs.push_back(merged);
            for (int64_t row = 0; row < rows; ++row) {
                for (int64_t i = 0; i < part.count; ++i) {
                    order.push_back(row * across + part.first + i);
                }
            }
        }
        nodes.push_back(std::move(joined));
        follow(node.outputs[0], order);
        return nodes;
    }

    std::vector<Node> turned(const Node& node) {
        Shape shape = graph_.values[node.input(0)].shape;
        std::swap(shape[1], shape[2]);
        std::vector<int64_t> axes(shape.size());
        std::iota(axes.begin(), axes.end(), 0);
        std::swap(axes[1], axes[2]);
        const int turned = add_result(graph_, graph_.values[node.input(0)].name + ":turned", shape);
        Node turn{node.name, "Transpose", {node.input(0)}, {turned}, {}};
        turn.attributes["perm"].integers = axes;
        Order order;
        for (int64_t b = 0; b < shape[1]; ++b) {
            for (int64_t a = 0; a < shape[2]; ++a) order.push_back(a * shape[1] + b);
        }
        std::vector<Node> nodes{std::move(turn),
                                reshape_node(graph_, node.name, turned, node.outputs[0])};
        follow(node.outputs[0], order);
        return nodes;
    }

    GraphIr graph_;
    std::vector<std::vector<int>> readers_;
};

}  // namespace

GraphIr order_channels(GraphIr graph) {
    return ChannelOrder(std::move(graph)).run();
}

}  // namespace newscaster::device::cuda
