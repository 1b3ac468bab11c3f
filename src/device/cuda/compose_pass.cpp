#include "device/cuda/compose_pass.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "device/cuda/geometry.h"
#include "device/cuda/pass_util.h"

namespace newscaster::device::cuda {

namespace {

class Compose {
  public:
    explicit Compose(GraphIr graph) : graph_(std::move(graph)), readers_(readers_of(graph_)) {}

    GraphIr run() {
        std::vector<Node> nodes;
        for (const Node& node : graph_.nodes) {
            if (const auto sum = sum_below(node)) {
                split(node, *sum, nodes);
            } else {
                nodes.push_back(node);
            }
        }
        graph_.nodes = std::move(nodes);
        tidy(graph_);
        return std::move(graph_);
    }

  private:
    struct Sum {
        int rest;          // m
        const Node* conv;  // what is added to it
    };

    [[nodiscard]] bool has_one_reader(int value) const {
        return readers_[value].size() == 1 && !is_output(graph_, value);
    }

    [[nodiscard]] const Node* producer(int value) const {
        const int index = graph_.values[value].producer;
        return index == kAbsent ? nullptr : &graph_.nodes[index];
    }

    [[nodiscard]] bool is_1x1(const Node& node) const {
        if (!is_plain_conv(graph_, node)) return false;
        const Window w = window_of(graph_, node);
        const auto all = [](const std::vector<int64_t>& values, int64_t wanted) {
            return std::ranges::all_of(values, [&](int64_t value) { return value == wanted; });
        };
        return all(w.kernel, 1) && all(w.stride, 1) && all(w.pad_begin, 0) && all(w.pad_end, 0);
    }

    [[nodiscard]] std::optional<Sum> sum_below(const Node& node) const {
        if (!is_1x1(node) || !has_one_reader(node.input(0))) return std::nullopt;
        const Node* add = producer(node.input(0));
        if (add == nullptr || add->op != "Add") return std::nullopt;
        for (const size_t side : {0U, 1U}) {
            const int value = add->input(side);
            const Node* conv = producer(value);
            if (conv == nullptr || !has_one_reader(value) || !is_plain_conv(graph_, *conv))
                continue;
            const Shape& inner = graph_.values[conv->input(1)].shape;
            const bool fewer = graph_.values[node.input(1)].shape[0] < inner[0];
            const Shape& whole = graph_.values[node.input(0)].shape;
            const int rest = add->input(1 - side);
            if (fewer && inner.size() == whole.size() && graph_.values[value].shape == whole &&
                graph_.values[rest].shape == whole) {
                return Sum{rest, conv};
            }
        }
        return std::nullopt;
    }

    void split(const Node& node, const Sum& sum, std::vector<Node>& nodes) {
        const Shape shape = graph_.values[node.outputs[0]].shape;
        const int first = add_result(graph_, node.name + ":rest", shape);
        const int second = add_result(graph_, node.name + ":composed", shape);
        const Node inner = *sum.conv;
        Node rest = node;
        rest.inputs[0] = sum.rest;
        rest.outputs = {first};
        auto [weights, bias] = product(node, inner);
        Node composed{
            node.name + " * " + inner.name, "Conv", {inner.input(0)}, {second}, inner.attributes};
        composed.inputs.push_back(
            add_constant(graph_, composed.name + ":weights", std::move(weights)));
        composed.inputs.push_back(add_constant(graph_, composed.name + ":bias", bias));
        nodes.push_back(std::move(rest));
        nodes.push_back(std::move(composed));
        nodes.push_back({node.name + ":sum", "Add", {first, second}, node.outputs, {}});
    }

    // weights[k][c, taps] = sum over m of outer[k][m] * inner[m][c, taps], likewise the bias.
    [[nodiscard]] std::pair<Tensor, std::vector<float>> product(const Node& outer,
                                                                const Node& inner) const {
        const Tensor a = graph_.values[outer.input(1)].constant->to_f32();
        const Tensor b = graph_.values[inner.input(1)].constant->to_f32();
        const std::vector<float> bias = bias_of(graph_, inner);
        const int64_t between = a.shape()[1];
        const int64_t row = b.size() / between;
        Shape shape = b.shape();
        shape[0] = a.shape()[0];
        Tensor weights(DType::f32, shape);
        std::vector<float> shift(static_cast<size_t>(shape[0]));
        std::vector<double> sums(static_cast<size_t>(row));
        for (int64_t k = 0; k < shape[0]; ++k) {
            std::ranges::fill(sums, 0.0);
            double constant = 0.0;
            for (int64_t m = 0; m < between; ++m) {
                const double factor = static_cast<double>(a.as<float>()[k * between + m]);
                constant += factor * static_cast<double>(bias[static_cast<size_t>(m)]);
                const auto from =
                    b.as<float>().subspan(static_cast<size_t>(m * row), static_cast<size_t>(row));
                for (size_t i = 0; i < from.size(); ++i) {
                    sums[i] += factor * static_cast<double>(from[i]);
                }
            }
            std::ranges::transform(sums, weights.as<float>().begin() + k * row,
                                   [](double sum) { return static_cast<float>(sum); });
            shift[static_cast<size_t>(k)] = static_cast<float>(constant);
        }
        return {std::move(weights), std::move(shift)};
    }

    GraphIr graph_;
    std::vector<std::vector<int>> readers_;
};

}  // namespace

GraphIr compose_convs(GraphIr graph) {
    return Compose(std::move(graph)).run();
}

}  // namespace newscaster::device::cuda
