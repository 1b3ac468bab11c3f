#include "device/cuda/fusion.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <string>

#include "device/cuda/channel_passes.h"
#include "device/cuda/compose_pass.h"
#include "device/cuda/geometry.h"
#include "device/cuda/half_passes.h"
#include "device/cuda/halo_conv.h"
#include "device/cuda/memory_plan.h"

namespace newscaster::device::cuda {

namespace {

constexpr int64_t kHalfFrom = 4096;   // smaller values stay f32: they cost nothing
constexpr int kReuseLimit = 4;        // work that is rather repeated by every reader than stored
constexpr int kExpressionLimit = 40;  // keeps kernels readable for the compiler
constexpr int64_t kBlowUp = 8;        // readers this much larger would repeat work too often
constexpr int kSampledLimit = 2;
constexpr int64_t kShortRow = 32;  // softmax: a thread per row instead of a block
constexpr int64_t kManyRows = 1 << 15;

bool is_one_of(const std::string& op, std::initializer_list<const char*> ops) {
    return std::ranges::any_of(ops, [&](const char* known) { return op == known; });
}

bool loops(const std::string& op) {
    return is_one_of(op, {"Conv", "MatMul", "Gemm", "AveragePool", "MaxPool", "GlobalAveragePool",
                          "TapSum"}) ||
           op.starts_with("Reduce");
}

// Operators that read an input several times per output element.
bool samples(const GraphIr& graph, const Node& node, size_t input) {
    if (node.op == "Conv" || node.op == "MatMul" || node.op == "Gemm") return true;
    if (node.op == "Resize") return input == 0 && repeats_of(graph, node).empty();
    return input == 0 &&
           (is_one_of(node.op, {"AveragePool", "MaxPool"}) || node.op.starts_with("GridSample"));
}

bool moves_only(const std::string& op) {
    return is_one_of(op, {"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Slice",
                          "Expand", "Tile", "DepthToSpace", "SpaceToDepth", "Split", "Gather",
                          "Concat", "Pad", "Resize"}) ||
           op.starts_with("GridSample");
}

int own_cost(const GraphIr& graph, const Node& node) {
    const std::string& op = node.op;
    if (loops(op)) return 16;
    if (op.starts_with("GridSample")) return 20;
    if (op == "Resize") return repeats_of(graph, node).empty() ? 8 : 1;
    if (is_one_of(op, {"Exp", "Log", "Sin", "Cos", "Erf", "Sigmoid", "Tanh", "Softplus", "Mish",
                       "Gelu", "Pow", "Elu", "Sqrt", "Div", "BatchNormalization"})) {
        return 5;
    }
    if (is_one_of(op, {"Concat", "Pad", "Reshape"})) return 2;
    return is_one_of(op, {"Identity", "Unsqueeze", "Squeeze", "Expand"}) ? 0 : 1;
}

// The source with names that differ between equal kernels: its own, and those of parameters.
std::string general_form(const KernelStep& kernel) {
    std::string text;
    std::map<std::string, size_t> parameters;
    const std::string& source = kernel.source;
    for (size_t at = 0; at < source.size();) {
        size_t end = at;
        while (end < source.size() &&
               (std::isalnum(static_cast<unsigned char>(source[end])) != 0 || source[end] == '_')) {
            ++end;
        }
        if (end == at) {
            text += source[at++];
            continue;
        }
        const std::string word = source.substr(at, end - at);
        if (word.starts_with(kernel.name)) {
            text += "nc_kernel" + word.substr(kernel.name.size());
        } else if (word.size() > 1 && word[0] == 'v' &&
                   std::isdigit(static_cast<unsigned char>(word[1])) != 0) {
            text += fmt::format("v{}", parameters.emplace(word, parameters.size()).first->second);
        } else {
            text += word;
        }
        at = end;
    }
    return text;
}

// Equal kernels are compiled once.
void share_kernels(Plan& plan) {
    std::map<std::string, std::string> names;  // by general form
    for (Step& step : plan.steps) {
        auto* kernel = std::get_if<KernelStep>(&step.work);
        if (kernel == nullptr) continue;
        const auto [at, added] = names.emplace(general_form(*kernel), kernel->name);
        if (added) continue;
        kernel->name = at->second;
        kernel->source.clear();
    }
}

class Fuser {
  public:
    Fuser(Rewritten rewritten, bool own_convs, Plan& plan)
        : rewritten_(std::move(rewritten)), own_convs_(own_convs), plan_(plan) {
        plan_.graph = std::move(rewritten_.graph);
        const GraphIr& graph = plan_.graph;
        plan_.storage.resize(graph.values.size());
        readers_.resize(graph.values.size());
        cost_.resize(graph.values.size(), 0);
        for (size_t i = 0; i < graph.nodes.size(); ++i) {
            for (const int input : graph.nodes[i].inputs) {
                if (input != kAbsent) readers_[input].push_back(static_cast<int>(i));
            }
        }
    }

    void run() {
        place_ports();
        for (size_t i = 0; i < plan_.graph.nodes.size(); ++i) place_results(static_cast<int>(i));
        for (size_t i = 0; i < plan_.graph.nodes.size(); ++i) add_steps(static_cast<int>(i));
        fuse_halo_results(plan_);
        share_kernels(plan_);
    }

  private:
    void place_ports() {
        const GraphIr& graph = plan_.graph;
        for (size_t i = 0; i < graph.values.size(); ++i) {
            const Value& value = graph.values[i];
            if (value.constant != nullptr) {
                const bool narrow = value.dtype == DType::f64 || value.dtype == DType::bf16;
                plan_.storage[i] =
                    row_major(Place::constant, narrow ? DType::f32 : value.dtype, value.shape);
            }
        }
        for (const int input : graph.inputs) {
            plan_.storage[input] =
                row_major(Place::input, graph.values[input].dtype, graph.values[input].shape);
        }
        for (const int output : graph.outputs) {
            plan_.storage[output] =
                row_major(Place::output, graph.values[output].dtype, graph.values[output].shape);
        }
    }

    void place_results(int index) {
        const Node& node = plan_.graph.nodes[index];
        int cost = own_cost(plan_.graph, node);
        for (const int input : node.inputs) {
            if (input != kAbsent && plan_.storage[input].place == Place::inlined)
                cost += cost_[input];
        }
        for (const int output : node.outputs) {
            if (output == kAbsent) continue;
            cost_[output] = cost;
            if (plan_.storage[output].place == Place::output) continue;
            if (must_store(index, output)) plan_.storage[output] = storage_of(output);
        }
    }

    [[nodiscard]] bool must_store(int index, int value) const {
        if (rewritten_.claims.contains(value) || rewritten_.roles[index] != Role::fused)
            return true;
        const Node& node = plan_.graph.nodes[index];
        const auto& readers = readers_[value];
        const int64_t count = plan_.graph.values[value].count();
        if (readers.size() > 1 && cost_[value] > kReuseLimit) return true;
        if (cost_[value] > kExpressionLimit) return true;
        for (const int reader : readers) {
            const Node& next = plan_.graph.nodes[reader];
            const int64_t read_by = plan_.graph.values[next.outputs[0]].count();
            if (cost_[value] >= 2 && read_by >= kBlowUp * count) return true;
            for (size_t k = 0; k < next.inputs.size(); ++k) {
                if (next.inputs[k] != value || rewritten_.roles[reader] != Role::fused) continue;
                if (samples(plan_.graph, next, k) && cost_[value] > kSampledLimit) return true;
            }
            if (loops(node.op) && (moves_only(next.op) || loops(next.op) || read_by != count ||
                                   rewritten_.roles[reader] != Role::fused)) {
                return true;
            }
        }
        // A row kernel may read its input twice.
        return std::ranges::any_of(readers, [&](int reader) {
            return rewritten_.roles[reader] == Role::row && cost_[value] > 2 * kReuseLimit;
        });
    }

    [[nodiscard]] Storage storage_of(int value) const {
        const Value& info = plan_.graph.values[value];
        const auto claim = rewritten_.claims.find(value);
        if (claim != rewritten_.claims.end()) {
            return claim->second.channels_last
                       ? channels_last(Place::arena, claim->second.dtype, info.shape)
                       : row_major(Place::arena, claim->second.dtype, info.shape);
        }
        const bool floating =
            info.dtype == DType::f32 || info.dtype == DType::f16 || info.dtype == DType::f64;
        if (!floating) return row_major(Place::arena, info.dtype, info.shape);
        const bool half =
            rewritten_.half && !rewritten_.keep_f32[value] && info.count() >= kHalfFrom;
        const bool row = rewritten_.roles[info.producer] == Role::row;
        if (half && !row && info.shape.size() >= 4 && info.shape.size() <= 5 &&
            info.shape[1] > kChannelPad / 2) {
            return channels_last(Place::arena, DType::f16, info.shape);
        }
        return row_major(Place::arena, half ? DType::f16 : DType::f32, info.shape);
    }

    [[nodiscard]] bool is_short_softmax(const Node& node) const {
        if (node.op != "Softmax") return false;
        const Shape& x = plan_.graph.values[node.input(0)].shape;
        const int64_t length = x[static_cast<size_t>(reduced_axes(plan_.graph, node).front())];
        return length <= kShortRow && element_count(x) / length >= kManyRows;
    }

    void add_steps(int index) {
        const Node& node = plan_.graph.nodes[index];
        const Role role = rewritten_.roles[index];
        const std::string name = fmt::format("nc_kernel_{}", plan_.steps.size());
        const std::string label = fmt::format("{} '{}'", node.op, node.name);
        if (role == Role::conv) {
            const ConvStep& conv = rewritten_.convs.at(index);
            auto own = own_convs_ ? halo_conv_step(plan_, index, conv, name) : std::nullopt;
            if (!own && conv.upsample != 1) {
                plan_.graph.fail(node, fmt::format("{} {}", kUpsample, conv.upsample),
                                 "a shape that suits_halo_conv accepts");
            }
            plan_.steps.push_back(own ? std::move(*own)
                                      : Step{conv, label, node.inputs, node.outputs[0]});
        } else if (role == Role::gemm) {
            plan_.steps.push_back(
                {rewritten_.gemms.at(index), label, node.inputs, node.outputs[0]});
        } else if (role == Role::stats) {
            plan_.steps.push_back(instance_stats_step(plan_, index, name));
        } else if (role == Role::row) {
            plan_.steps.push_back(is_short_softmax(node) ? short_softmax_step(plan_, index, name)
                                                         : row_step(plan_, index, name));
        } else {
            for (const int output : node.outputs) {
                if (output == kAbsent || plan_.storage[output].place == Place::inlined) continue;
                plan_.steps.push_back(
                    pointwise_step(plan_, output, fmt::format("nc_kernel_{}", plan_.steps.size())));
            }
        }
    }

    Rewritten rewritten_;
    bool own_convs_;
    Plan& plan_;
    std::vector<std::vector<int>> readers_;
    std::vector<int> cost_;
};

}  // namespace

Plan make_plan(const GraphIr& graph, Precision precision, int capability) {
    Plan plan;
    const bool half = precision == Precision::f16;
    const bool own_convs = half && capability == kHaloCapability;
    const GraphIr passed =
        half ? pass_for_half(order_channels(compose_convs(graph)), own_convs) : graph;
    Fuser(rewrite(passed, precision, own_convs), own_convs, plan).run();
    plan_memory(plan);
    return plan;
}

}  // namespace newscaster::device::cuda
