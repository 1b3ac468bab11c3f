#include "device/cuda/rewriting.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "device/cuda/half_passes.h"
#include "device/cuda/host_eval.h"

namespace newscaster::device::cuda {

namespace {

constexpr int64_t kLongReduction = 64;
constexpr int64_t kManyMacs = int64_t{1} << 30;
constexpr int64_t kHugeMacs = int64_t{1} << 37;

bool is_product(const std::string& op) {
    return op == "MatMul" || op == "Gemm";
}

std::vector<bool> values_kept_f32(const GraphIr& graph) {
    // Marks run from consumers to producers: what a logarithm sees spans too many orders of
    // magnitude for f16, and a coordinate needs more than its 11 bits; the latter rule stops at
    // convolutions and products, whose results are offsets, small by themselves.
    std::vector<bool> wide(graph.values.size(), false);
    std::vector<bool> coordinate(graph.values.size(), false);
    for (size_t i = graph.nodes.size(); i > 0; --i) {
        const Node& node = graph.nodes[i - 1];
        bool is_wide = node.op == "Log";
        bool is_coordinate = false;
        for (const int output : node.outputs) {
            if (output == kAbsent) continue;
            is_wide = is_wide || wide[output];
            is_coordinate = is_coordinate || coordinate[output];
        }
        const bool stops = node.op == "Conv" || is_product(node.op);
        for (size_t k = 0; k < node.inputs.size(); ++k) {
            if (node.inputs[k] == kAbsent) continue;
            if (is_wide) wide[node.inputs[k]] = true;
            const bool grid = node.op.starts_with("GridSample") && k == 1;
            if (grid || (is_coordinate && !stops)) coordinate[node.inputs[k]] = true;
        }
    }
    for (size_t i = 0; i < wide.size(); ++i) wide[i] = wide[i] || coordinate[i];
    for (const Node& node : graph.nodes) {
        if (node.op != "TapSum") continue;
        int part = node.input(0);  // of a sum of many
        wide[part] = true;
        const int producer = graph.values[part].producer;
        if (producer != kAbsent && graph.nodes[producer].op == "Reshape") {
            part = graph.nodes[producer].input(0);
            wide[part] = true;
        }
    }
    return wide;
}

Tensor to_half(const Tensor& tensor) {
    const Tensor source = tensor.to_f32();
    const auto values = source.as<float>();
    Tensor result(DType::f16, tensor.shape());
    for (size_t i = 0; i < values.size(); ++i) {
        const uint16_t bits = float_to_half(values[i]);
        std::memcpy(result.data() + i * sizeof(bits), &bits, sizeof(bits));
    }
    return result;
}

// [K, C, taps...] -> f16 [K padded, taps..., C padded], zeros in the padding.
Tensor conv_weights(const Tensor& tensor) {
    const Tensor source = tensor.to_f32();
    const auto values = source.as<float>();
    const Shape& w = tensor.shape();
    int64_t taps = 1;
    for (size_t i = 2; i < w.size(); ++i) taps *= w[i];
    const int64_t channels = padded_channels(w[1]);
    Tensor result(DType::f16, {padded_channels(w[0]), taps, channels});
    for (int64_t k = 0; k < w[0]; ++k) {
        for (int64_t c = 0; c < w[1]; ++c) {
            for (int64_t t = 0; t < taps; ++t) {
                const uint16_t bits = float_to_half(values[(k * w[1] + c) * taps + t]);
                std::memcpy(result.data() + ((k * taps + t) * channels + c) * 2, &bits, 2);
            }
        }
    }
    return result;
}

class Rewriter {
  public:
    Rewriter(const GraphIr& source, Precision precision, bool own_convs)
        : source_(source), own_convs_(own_convs) {
        out_.graph = source;
        out_.graph.nodes.clear();
        out_.half = precision == Precision::f16;
        out_.keep_f32 = values_kept_f32(source);
        for (auto& value : out_.graph.values) value.producer = kAbsent;
        consumers_.resize(source.values.size());
        for (size_t i = 0; i < source.nodes.size(); ++i) {
            for (const int input : source.nodes[i].inputs) {
                if (input != kAbsent) consumers_[input].push_back(static_cast<int>(i));
            }
        }
        skipped_.resize(source.nodes.size(), false);
    }

    Rewritten run() {
        for (size_t i = 0; i < source_.nodes.size(); ++i) {
            if (skipped_[i]) continue;
            const Node& node = source_.nodes[i];
            if (node.op == "Conv" && wants_cudnn(node) && !wants_bare_conv(node)) {
                add_conv(node);
            } else if (node.op == "Conv" && node.input(2) != kAbsent) {
                split_bias(node, kAbsent);
            } else if (is_product(node.op)) {
                add_product(node);
            } else if (node.op == "InstanceStats") {
                add_stats(node);
            } else if (samples_port(node)) {
                Node sample = node;
                sample.inputs[0] = operand(node.input(0), {true, DType::f16});
                add(std::move(sample), Role::fused);
            } else {
                add(node, is_row(node) ? Role::row : Role::fused);
            }
        }
        finish_outputs();
        return std::move(out_);
    }

  private:
    int add(Node node, Role role) {
        const int index = static_cast<int>(out_.graph.nodes.size());
        for (const int output : node.outputs) {
            if (output != kAbsent) out_.graph.values[output].producer = index;
        }
        out_.graph.nodes.push_back(std::move(node));
        out_.roles.push_back(role);
        return index;
    }

    int new_value(const std::string& name, DType dtype, const Shape& shape, bool keep_f32,
                  TensorPtr constant = nullptr) {
        out_.keep_f32.push_back(keep_f32);
        return out_.graph.add_value({name, dtype, shape, std::move(constant), kAbsent});
    }
    int new_constant(const std::string& name, Tensor tensor) {
        const DType dtype = tensor.dtype();
        const Shape shape = tensor.shape();
        return new_value(name, dtype, shape, false, std::make_shared<Tensor>(std::move(tensor)));
    }

    [[nodiscard]] bool is_output(int value) const {
        return std::ranges::find(source_.outputs, value) != source_.outputs.end();
    }
    [[nodiscard]] bool runs_half(const Node& node) const {
        return out_.half && !out_.keep_f32[node.outputs[0]];
    }

    // Multiply-adds of a convolution.
    [[nodiscard]] int64_t macs_of(const Node& node) const {
        const Shape& weights = source_.values[node.input(1)].shape;
        return source_.values[node.outputs[0]].count() *
               (element_count(weights) / std::max<int64_t>(weights.at(0), 1));
    }

    // Coordinates come from a large convolution too: it sums in f32 and is stored so.
    [[nodiscard]] bool wants_cudnn(const Node& node) const {
        if (node.attributes.contains(kUpsample)) return true;  // no other kernel takes these
        if (out_.half && node.attributes.contains(kForLibraries)) return true;
        return (runs_half(node) || (out_.half && macs_of(node) >= kManyMacs)) &&
               source_.is_constant(node.input(1)) &&
               (node.input(2) == kAbsent || source_.is_constant(node.input(2))) &&
               node.integer("group", 1) == 1;
    }

    // Large 3-D convolutions of odd widths: cuDNN's kernels that take bias and activation along are
    // slow there (1.7 times on an H200), so that these become a pass of their own.
    [[nodiscard]] bool wants_bare_conv(const Node& node) const {
        const Shape& weights = source_.values[node.input(1)].shape;
        if (own_convs_ || weights.size() != 5 || weights[1] % 64 == 0 || node.input(2) == kAbsent) {
            return false;
        }
        return macs_of(node) >= kHugeMacs;
    }

    // Pixels sampled from an input of the graph: with their channels side by side each corner is
    // one load.
    [[nodiscard]] bool samples_port(const Node& node) const {
        if (!out_.half || !node.op.starts_with("GridSample")) return false;
        const Value& pixels = source_.values[node.input(0)];
        return pixels.producer == kAbsent && pixels.constant == nullptr &&
               pixels.shape[1] % kChannelPad == 0;
    }

    [[nodiscard]] bool is_row(const Node& node) const {
        if (node.op == "Softmax" || node.op == "LayerNormalization" ||
            node.op == "InstanceNormalization") {
            return true;
        }
        if (!node.op.starts_with("Reduce") && node.op != "GlobalAveragePool") return false;
        int64_t length = 1;
        for (const int64_t axis : reduced_axes(source_, node)) {
            length *= source_.values[node.input(0)].shape[axis];
        }
        return length >= kLongReduction;
    }

    // The value itself when it can be stored as claimed, else a copy of it that is.
    int operand(int value, const Claim& claim) {
        const auto copy = copies_.find({value, claim.channels_last});
        if (copy != copies_.end()) return copy->second;
        const Value info = out_.graph.values[value];  // a copy: the list grows below
        if (info.constant != nullptr && !claim.channels_last) {
            if (claim.dtype == info.dtype) return value;
            return new_constant(info.name + ":f16", to_half(*info.constant));
        }
        const auto claimed = out_.claims.find(value);
        const bool free = claimed == out_.claims.end() || claimed->second == claim;
        const bool stored_input = info.producer == kAbsent;
        const bool by_row = !stored_input && out_.roles[info.producer] == Role::row;
        if (stored_input && !claim.channels_last && claim.dtype == info.dtype) return value;
        if (free && !stored_input && !is_output(value) && !(by_row && claim.channels_last) &&
            !(out_.keep_f32[value] && claim.dtype == DType::f16)) {
            out_.claims[value] = claim;
            return value;
        }
        const int target = new_value(info.name + ":copy", DType::f32, info.shape, false);
        Node identity{info.name + ":copy", "Identity", {value}, {target}, {}};
        add(std::move(identity), Role::fused);
        out_.claims[target] = claim;
        copies_[{value, claim.channels_last}] = target;
        return target;
    }

    // What follows a node with a single reader: that reader's index, or kAbsent.
    [[nodiscard]] int only_reader(int value) const {
        if (static_cast<size_t>(value) >= consumers_.size()) return kAbsent;  // made here
        return consumers_[value].size() == 1 && !is_output(value) ? consumers_[value][0] : kAbsent;
    }

    void add_conv(const Node& node) {
        ConvStep step;
        step.window = window_of(source_, node);
        step.upsample = node.integer(kUpsample, 1);
        Node conv{node.name, "Conv", {}, {node.outputs[0]}, node.attributes};
        conv.inputs.push_back(operand(node.input(0), {true, DType::f16}));
        const Tensor& weights = *source_.values[node.input(1)].constant;
        conv.inputs.push_back(new_constant(node.name + ":weights", conv_weights(weights)));
        if (node.input(2) != kAbsent) {
            const Tensor bias = source_.values[node.input(2)].constant->to_f32();
            Tensor wide(DType::f32, {padded_channels(weights.shape()[0])});
            std::ranges::copy(bias.as<float>(), wide.as<float>().begin());
            conv.inputs.push_back(new_constant(node.name + ":bias", std::move(wide)));
            step.has_bias = true;
        }
        const int reader = only_reader(node.outputs[0]);
        if (reader != kAbsent) {
            const Node& next = source_.nodes[reader];
            if (next.op == "LeakyRelu" || next.op == "Relu") {
                step.activation = Activation::leaky_relu;
                step.slope = next.op == "Relu" ? 0.0F : next.number("alpha", 0.01F);
                conv.outputs[0] = next.outputs[0];
                conv.name += " + " + next.op;
                skipped_[reader] = true;
            }
        }
        const int raw = internal_result(conv);
        out_.claims[conv.outputs[0]] = {true,
                                        out_.keep_f32[node.outputs[0]] ? DType::f32 : DType::f16};
        const int index = add(conv, Role::conv);
        out_.convs[index] = step;
        copy_result(conv, raw);
    }

    void add_stats(const Node& node) {
        Node stats = node;
        stats.inputs[0] = operand(node.input(0), {true, DType::f16});
        out_.claims[stats.outputs[0]] = {false, DType::f32};
        add(std::move(stats), Role::stats);
    }

    // Libraries do not write graph outputs: those have their own type and layout.
    int internal_result(Node& node) {
        const int result = node.outputs[0];
        if (!is_output(result)) return kAbsent;
        const Value info = out_.graph.values[result];
        node.outputs[0] = new_value(info.name + ":raw", DType::f32, info.shape, false);
        return result;
    }
    void copy_result(const Node& node, int result) {
        if (result == kAbsent) return;
        add({node.name + ":out", "Identity", {node.outputs[0]}, {result}, {}}, Role::fused);
    }

    // node(x, w, b) -> node(x, w) + b, so that b joins whatever expression follows.
    void split_bias(const Node& node, int beta) {
        Node bare{node.name, node.op, {node.input(0), node.input(1)}, {}, node.attributes};
        const Value info = out_.graph.values[node.outputs[0]];
        const int raw =
            new_value(info.name + ":raw", DType::f32, info.shape, out_.keep_f32[node.outputs[0]]);
        bare.outputs = {raw};
        if (is_product(node.op)) {
            add_bare_product(bare, runs_half(node));
        } else if (wants_cudnn(node)) {
            add_conv(bare);
        } else {
            add(bare, Role::fused);
        }
        int bias = node.input(2);
        if (node.op == "Conv") {
            Shape shape(info.shape.size(), 1);
            shape[1] = info.shape[1];
            const int wide = new_value(node.name + ":bias", DType::f32, shape, true);
            const int64_t rank = static_cast<int64_t>(shape.size());
            Tensor target(DType::i64, {rank});
            std::ranges::copy(shape, target.as<int64_t>().begin());
            const int shape_value = new_constant(node.name + ":bias_shape", std::move(target));
            add({node.name + ":bias", "Reshape", {bias, shape_value}, {wide}, {}}, Role::fused);
            bias = wide;
        }
        if (beta != kAbsent) {
            const int scaled =
                new_value(node.name + ":beta", DType::f32, out_.graph.values[bias].shape, true);
            add({node.name + ":beta", "Mul", {bias, beta}, {scaled}, {}}, Role::fused);
            bias = scaled;
        }
        add({node.name + ":add", "Add", {raw, bias}, {node.outputs[0]}, {}}, Role::fused);
    }

    void add_product(const Node& node) {
        if (node.op == "Gemm" && node.input(2) != kAbsent) {
            const float beta = node.number("beta", 1.0F);
            const int scale = beta == 1.0F
                                  ? kAbsent
                                  : new_constant(node.name + ":beta_value",
                                                 Tensor::of<float>({}, std::span(&beta, 1)));
            split_bias(node, scale);
            return;
        }
        Node bare{
            node.name, node.op, {node.input(0), node.input(1)}, node.outputs, node.attributes};
        const int raw = internal_result(bare);
        add_bare_product(bare, runs_half(node));
        copy_result(bare, raw);
    }

    void add_bare_product(Node node, bool half) {
        const auto step = gemm_of(node);
        if (!step) {
            add(node, Role::fused);  // batches that broadcast in both directions
            return;
        }
        const Claim claim{false, half ? DType::f16 : DType::f32};
        node.inputs[0] = operand(node.inputs[0], claim);
        node.inputs[1] = operand(node.inputs[1], claim);
        out_.claims[node.outputs[0]] = claim;
        const int index = add(node, Role::gemm);
        out_.gemms[index] = *step;
    }

    [[nodiscard]] std::optional<GemmStep> gemm_of(const Node& node) const {
        const Shape& a = out_.graph.values[node.input(0)].shape;
        const Shape& b = out_.graph.values[node.input(1)].shape;
        GemmStep step;
        step.transpose_a = node.op == "Gemm" && node.integer("transA", 0) != 0;
        step.transpose_b = node.op == "Gemm" && node.integer("transB", 0) != 0;
        if (node.op == "Gemm") step.alpha = node.number("alpha", 1.0F);
        const size_t ra = a.size();
        const size_t rb = b.size();
        step.m = a[ra - (step.transpose_a ? 1 : 2)];
        step.k = a[ra - (step.transpose_a ? 2 : 1)];
        step.n = b[rb - (step.transpose_b ? 2 : 1)];
        const int64_t batch_a = element_count(a) / (step.m * step.k);
        const int64_t batch_b = element_count(b) / (step.n * step.k);
        if (batch_b == 1 && !step.transpose_a) {
            step.m *= batch_a;
            return step;
        }
        const Shape head_a(a.begin(), a.end() - 2);
        const Shape head_b(b.begin(), b.end() - 2);
        if (head_a != head_b && batch_a != 1 && batch_b != 1) return std::nullopt;
        step.batch = std::max(batch_a, batch_b);
        step.stride_a = batch_a == 1 ? 0 : step.m * step.k;
        step.stride_b = batch_b == 1 ? 0 : step.n * step.k;
        return step;
    }

    // Outputs that are inputs, constants or read by others in another form get a node of their own.
    void finish_outputs() {
        for (int& output : out_.graph.outputs) {
            const Value info = out_.graph.values[output];
            if (info.producer != kAbsent && out_.roles[info.producer] == Role::fused) continue;
            if (info.producer != kAbsent && out_.roles[info.producer] == Role::row) continue;
            const int copy = new_value(info.name, info.dtype, info.shape, true);
            add({info.name + ":out", "Identity", {output}, {copy}, {}}, Role::fused);
            output = copy;
        }
    }

    const GraphIr& source_;
    bool own_convs_;
    Rewritten out_;
    std::vector<std::vector<int>> consumers_;
    std::vector<bool> skipped_;
    std::map<std::pair<int, bool>, int> copies_;
};

}  // namespace

Rewritten rewrite(const GraphIr& graph, Precision precision, bool own_convs) {
    return Rewriter(graph, precision, own_convs).run();
}

}  // namespace newscaster::device::cuda
