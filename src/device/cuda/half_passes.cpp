#include "device/cuda/half_passes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include "device/cuda/geometry.h"
#include "device/cuda/halo_conv.h"
#include "device/cuda/pass_util.h"

namespace newscaster::device::cuda {

namespace {

constexpr int64_t kLongChannel = 256;  // elements; shorter ones are normalised by one block each
constexpr int64_t kFewOutputs = 32;    // channels that leave a tensor core's tile mostly empty
constexpr int64_t kDeepInput = 64;     // channels from which a product per pixel pays
constexpr int64_t kManyTaps = 25;
constexpr int64_t kMostTapResults = 64;
constexpr int64_t kWideKernel = 5;  // taps along an axis from which shared rows pay
constexpr int64_t kManyMacs = int64_t{1} << 25;

template <typename T>
std::vector<T> joined(std::vector<T> a, const std::vector<T>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

// Builds the new list of nodes; values are only ever added.
class Pass {
  public:
    Pass(GraphIr graph, bool own_convs)
        : graph_(std::move(graph)), readers_(readers_of(graph_)), own_convs_(own_convs) {
        nodes_ = std::exchange(graph_.nodes, {});
    }

    GraphIr run() {
        merge_siblings();
        for (const Node& node : nodes_) {
            if (node.op.empty()) continue;  // merged into another
            if (!split_instance_norm(node) && !widen(node) && !gather_taps(node) &&
                !read_coarsely(node)) {
                emit(node);
            }
        }
        tidy(graph_);
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
        if (graph_.values[a.input(1)].shape != graph_.values[b.input(1)].shape) return false;
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
        const int raw = add_result(graph_, name, y);
        Node conv{name, "Conv", {a.input(0)}, {raw}, a.attributes};
        conv.inputs.push_back(add_constant(graph_, name + ":weights", std::move(wide)));
        conv.inputs.push_back(add_constant(graph_, name + ":bias", bias));
        Node split{name + ":split", "Split", {raw}, {a.outputs[0], b.outputs[0]}, {}};
        split.inputs.push_back(
            add_constant(graph_, name + ":sizes", std::vector{wa.shape()[0], wb.shape()[0]}));
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

    // The value of which this one repeats each pixel, and how often per axis.
    [[nodiscard]] std::pair<int, std::vector<int64_t>> repeated(int value) const {
        std::vector<int64_t> factors(graph_.values[value].shape.size(), 1);
        while (graph_.values[value].producer != kAbsent) {
            const Node& node = graph_.nodes[graph_.values[value].producer];
            const auto more = repeats_of(graph_, node);
            if (more.empty()) break;
            for (size_t i = 0; i < factors.size(); ++i) factors[i] *= more[i];
            value = node.input(0);
        }
        return {value, std::move(factors)};
    }

    // Conv(Resize(x)) -> Conv(x) with kUpsample: positions that see the same pixels of x share a
    // kernel whose taps are sums of the original's, so that most of the work is gone.
    bool read_coarsely(const Node& node) {
        if (!own_convs_ || !is_plain_conv(graph_, node)) return false;
        const auto [coarse, factors] = repeated(node.input(0));
        const int64_t factor = factors.back();
        if (factor == 1 || factors.size() < 4) return false;
        for (size_t i = 0; i + 1 < factors.size(); ++i) {
            if (factors[i] != (i + 2 < factors.size() ? 1 : factor)) return false;
        }
        const ConvStep step{.window = window_of(graph_, node), .upsample = factor};
        for (size_t axis = 0; axis < step.window.dims(); ++axis) {
            if (step.window.stride[axis] != 1 ||
                step.window.pad_begin[axis] + step.window.pad_end[axis] + 1 !=
                    step.window.kernel[axis]) {
                return false;
            }
        }
        Node conv = node;
        conv.inputs[0] = coarse;
        conv.attributes[kUpsample].integer = factor;
        if (!suits_halo_conv(graph_, conv, step)) return false;
        emit(std::move(conv));
        return true;
    }

    bool split_instance_norm(const Node& node) {
        const Shape& x = graph_.values[node.input(0)].shape;
        if (node.op != "InstanceNormalization" || x.size() < 4) return false;
        if (element_count(x) / (x[0] * x[1]) < kLongChannel) return false;
        if (!graph_.is_constant(node.input(1)) || !graph_.is_constant(node.input(2))) return false;
        const int stats = add_result(graph_, node.name + ":stats", {x[0], 2, x[1]});
        Node measured{node.name, "InstanceStats", node.inputs, {stats}, node.attributes};
        measured.inputs[0] = repeated(node.input(0)).first;
        emit(std::move(measured));
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
        const int raw = products(node, std::move(weights));
        const std::vector<float> bias = bias_of(graph_, node);
        Node sum{node.name, "TapSum", {raw}, node.outputs, {}};
        sum.inputs.push_back(add_constant(graph_, node.name + ":bias", bias));
        sum.attributes["kernel_shape"] = integers(window.kernel);
        sum.attributes["pads"] = integers(joined(window.pad_begin, window.pad_end));
        emit(std::move(sum));
        return true;
    }

    // Every pixel with 1x1 weights, where the convolution has its own: [N, K, y, x].
    int products(const Node& node, Tensor weights) {
        const std::string name = node.name + ":taps";
        const Shape x = graph_.values[node.input(0)].shape;
        const int64_t outputs = weights.shape()[0];
        const int raw = add_result(graph_, name, {x[0], outputs, x[2], x[3]});
        Node conv{name, "Conv", {node.input(0)}, {raw}, {}};
        conv.attributes[kForLibraries].integer = 1;
        const int producer = graph_.values[node.input(0)].producer;
        if (producer != kAbsent && graph_.nodes[producer].op == "Reshape" && own_convs_) {
            // Channels that are C x depth of a volume: a product along its depth, in place.
            const int volume = graph_.nodes[producer].input(0);
            const Shape v = graph_.values[volume].shape;
            if (v.size() == 5 && v[0] == x[0] && v[3] == x[2] && v[4] == x[3]) {
                const int deep = add_result(graph_, name, {x[0], outputs, 1, x[2], x[3]});
                Node whole{name, "Conv", {volume}, {deep}, conv.attributes};
                Tensor turned(DType::f32, {outputs, v[1], v[2], 1, 1});
                std::memcpy(turned.data(), weights.data(), weights.bytes());
                whole.inputs.push_back(add_constant(graph_, name + ":weights", std::move(turned)));
                if (suits_halo_conv(graph_, whole, {.window = window_of(graph_, whole)})) {
                    emit(std::move(whole));
                    emit(reshape_node(graph_, name, deep, raw));
                    return raw;
                }
            }
        }
        conv.inputs.push_back(add_constant(graph_, name + ":weights", std::move(weights)));
        emit(std::move(conv));
        return raw;
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
        const int raw = add_result(graph_, node.name + ":2x2", coarse);
        Node conv{node.name + ":2x2", "Conv", {node.input(0)}, {raw}, {}};
        conv.inputs.push_back(add_constant(graph_, conv.name + ":weights", shifted_weights(node)));
        std::vector<float> bias;
        for (int copy = 0; copy < 4; ++copy) bias = joined(std::move(bias), bias_of(graph_, node));
        conv.inputs.push_back(add_constant(graph_, conv.name + ":bias", bias));
        conv.attributes["strides"] = integers({window.stride[0], 2, 2});
        conv.attributes["dilations"] = integers({window.dilation[0], 1, 1});
        conv.attributes["pads"] = integers(joined(window.pad_begin, window.pad_end));
        emit(std::move(conv));

        const std::string name = node.name + ":unfold";
        const Shape parts{y[0], 2, 2, y[1], y[2], y[3] / 2, y[4] / 2};
        const Shape woven{y[0], y[1], y[2], y[3] / 2, 2, y[4] / 2, 2};
        const int apart = add_result(graph_, name, parts);
        emit({name, "Reshape", {raw, add_constant(graph_, name + ":parts", parts)}, {apart}, {}});
        const int turned = add_result(graph_, name, woven);
        Node turn{name, "Transpose", {apart}, {turned}, {}};
        turn.attributes["perm"] = integers({0, 3, 4, 5, 1, 6, 2});
        emit(std::move(turn));
        emit({name,
              "Reshape",
              {turned, add_constant(graph_, name + ":shape", y)},
              node.outputs,
              {}});
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
    bool own_convs_;
};

}  // namespace

GraphIr pass_for_half(GraphIr graph, bool own_convs) {
    return Pass(std::move(graph), own_convs).run();
}

}  // namespace newscaster::device::cuda
