// From names to the typed graph: every node is inferred in order, and evaluated when its inputs are
// known, so that shape arithmetic and casts of weights vanish before anything reaches the GPU.
#include <fmt/format.h>

#include <algorithm>

#include "device/cuda/graph_ir.h"
#include "device/cuda/host_eval.h"
#include "device/cuda/shape_inference.h"
#include "newscaster/error.h"

namespace newscaster::device::cuda {

namespace {

// Larger results than this are computed on the GPU instead of being stored.
constexpr int64_t kFoldLimit = 1LL << 24U;
constexpr int64_t kElementLimit = 1LL << 31U;  // kernels index with 32 bits

class Builder {
  public:
    Builder(const OnnxModel& model, const std::string& origin,
            const std::map<std::string, Shape>& input_shapes)
        : model_(model) {
        graph_.origin = origin;
        graph_.opset = model.opset;
        add_inputs(input_shapes);
    }

    GraphIr build() {
        for (const auto& [name, tensor] : model_.initializers) {
            define(name, {name, tensor->dtype(), tensor->shape(), tensor, kAbsent});
        }
        for (const auto& node : model_.nodes) add_node(node);
        for (const auto& output : model_.outputs) {
            const auto found = names_.find(output.name);
            if (found == names_.end()) {
                throw Error(ErrorCode::bad_pack, fmt::format("{}: output '{}': nothing computes it",
                                                             graph_.origin, output.name));
            }
            graph_.outputs.push_back(found->second);
        }
        tidy(graph_);  // exporters leave nodes that nobody reads
        return std::move(graph_);
    }

  private:
    void add_inputs(const std::map<std::string, Shape>& fixed) {
        for (const auto& info : model_.inputs) {
            Shape shape = info.shape;
            const auto found = fixed.find(info.name);
            if (found != fixed.end()) {
                bool fits = found->second.size() == shape.size();
                for (size_t i = 0; fits && i < shape.size(); ++i) {
                    fits = shape[i] < 0 || shape[i] == found->second[i];
                }
                if (!fits) {
                    throw Error(ErrorCode::bad_pack,
                                fmt::format("{}: input '{}': found {}, wanted {}", graph_.origin,
                                            info.name, to_string(found->second), to_string(shape)));
                }
                shape = found->second;
            }
            if (std::ranges::any_of(shape, [](int64_t extent) { return extent < 1; })) {
                throw Error(ErrorCode::bad_pack,
                            fmt::format("{}: tensor '{}': found shape {}, wanted every extent "
                                        "fixed by the input shapes",
                                        graph_.origin, info.name, to_string(shape)));
            }
            const int value = define(info.name, {info.name, info.dtype, shape, nullptr, kAbsent});
            graph_.inputs.push_back(value);
        }
        for (const auto& [name, shape] : fixed) {
            if (!names_.contains(name)) {
                throw Error(ErrorCode::bad_pack,
                            fmt::format("{}: found a shape for input '{}', which the graph lacks",
                                        graph_.origin, name));
            }
        }
    }

    int define(const std::string& name, Value value) {
        const int index = graph_.add_value(std::move(value));
        if (!names_.emplace(name, index).second) {
            throw Error(ErrorCode::bad_pack,
                        fmt::format("{}: tensor '{}' is defined twice", graph_.origin, name));
        }
        return index;
    }

    void add_node(const OnnxNode& source) {
        Node node{source.name, source.op, {}, {}, source.attributes};
        for (const auto& name : source.inputs) {
            if (name.empty()) {
                node.inputs.push_back(kAbsent);
                continue;
            }
            const auto found = names_.find(name);
            if (found == names_.end()) {
                throw Error(ErrorCode::bad_pack,
                            fmt::format("{}: node '{}': input '{}' is not defined before it",
                                        graph_.origin, source.name, name));
            }
            node.inputs.push_back(found->second);
        }
        if (source.outputs.empty() || source.outputs.front().empty()) {
            graph_.fail(node, "no first output", "one");
        }
        if (source.op == "Constant") {
            define(source.outputs.at(0), constant_value(node, source));
            return;
        }
        node.outputs.resize(source.outputs.size(), kAbsent);
        const auto inferred = infer_outputs(graph_, node);
        if (fold(node, source, inferred)) return;
        const int index = static_cast<int>(graph_.nodes.size());
        for (size_t i = 0; i < source.outputs.size(); ++i) {
            if (source.outputs[i].empty()) continue;
            if (i >= inferred.size()) {
                graph_.fail(node, fmt::format("output {}", i), "fewer outputs");
            }
            const auto& [dtype, shape] = inferred[i];
            if (element_count(shape) < 1 || element_count(shape) >= kElementLimit) {
                graph_.fail(node, "a result of shape " + to_string(shape), "1 to 2^31 elements");
            }
            node.outputs[i] =
                define(source.outputs[i], {source.outputs[i], dtype, shape, nullptr, index});
        }
        graph_.nodes.push_back(std::move(node));
    }

    Value constant_value(const Node& node, const OnnxNode& source) const {
        const auto has = [&](const char* name) { return node.attributes.contains(name); };
        TensorPtr tensor;
        if (has("value")) {
            tensor = node.attributes.find("value")->second.tensor;
        } else if (has("value_float")) {
            const float value = node.number("value_float", 0.0F);
            tensor = std::make_shared<Tensor>(Tensor::of<float>({}, std::span(&value, 1)));
        } else if (has("value_int")) {
            const int64_t value = node.integer("value_int", 0);
            tensor = std::make_shared<Tensor>(Tensor::of<int64_t>({}, std::span(&value, 1)));
        } else if (has("value_ints")) {
            const auto values = node.integers("value_ints", {});
            tensor = std::make_shared<Tensor>(
                Tensor::of<int64_t>({static_cast<int64_t>(values.size())}, std::span(values)));
        }
        if (tensor == nullptr) graph_.fail(node, "a constant without a tensor", "one");
        return {source.outputs.at(0), tensor->dtype(), tensor->shape(), tensor, kAbsent};
    }

    bool fold(const Node& node, const OnnxNode& source, const std::vector<TypedShape>& inferred) {
        if (node.op == "Shape") {
            Shape dims = graph_.values[node.input(0)].shape;
            const auto rank = static_cast<int64_t>(dims.size());
            const auto place = [&](int64_t at) {
                return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank);
            };
            const int64_t first = place(node.integer("start", 0));
            const int64_t last = std::max(first, place(node.integer("end", rank)));
            dims = Shape(dims.begin() + first, dims.begin() + last);
            const Shape shape{static_cast<int64_t>(dims.size())};
            auto tensor = std::make_shared<Tensor>(
                Tensor::of<int64_t>(shape, std::span<const int64_t>(dims)));
            define(source.outputs.at(0),
                   {source.outputs.at(0), DType::i64, shape, std::move(tensor), kAbsent});
            return true;
        }
        for (const int input : node.inputs) {
            if (input != kAbsent && !graph_.is_constant(input)) return false;
        }
        if (node.inputs.empty() || element_count(inferred[0].second) > kFoldLimit) return false;
        if (node.op == "Cast" && inferred[0].first == DType::f32) {
            auto tensor = std::make_shared<Tensor>(graph_.values[node.input(0)].constant->to_f32());
            define(source.outputs.at(0), {source.outputs.at(0), DType::f32, inferred[0].second,
                                          std::move(tensor), kAbsent});
            return true;
        }
        store_folded(node, source, inferred);
        return true;
    }

    void store_folded(const Node& node, const OnnxNode& source,
                      const std::vector<TypedShape>& inferred) {
        std::vector<HostArray> arrays;
        arrays.reserve(node.inputs.size());
        std::vector<const HostArray*> inputs;
        for (const int input : node.inputs) {
            if (input != kAbsent) arrays.push_back(to_host_array(*graph_.values[input].constant));
            inputs.push_back(input == kAbsent ? nullptr : &arrays.back());
        }
        auto results = evaluate(graph_, node, inputs);
        for (size_t i = 0; i < source.outputs.size(); ++i) {
            results.at(i).dtype = inferred.at(i).first;
            auto tensor = std::make_shared<Tensor>(to_tensor(results[i]));
            define(source.outputs[i], {source.outputs[i], inferred[i].first, inferred[i].second,
                                       std::move(tensor), kAbsent});
        }
    }

    const OnnxModel& model_;
    GraphIr graph_;
    std::map<std::string, int, std::less<>> names_;
};

}  // namespace

GraphIr build_graph(const OnnxModel& model, const std::string& origin,
                    const std::map<std::string, Shape>& input_shapes) {
    return Builder(model, origin, input_shapes).build();
}

}  // namespace newscaster::device::cuda
