#include "device/cuda/shape_inference.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string_view>
#include <unordered_map>

#include "device/cuda/geometry.h"
#include "device/cuda/host_eval.h"

namespace newscaster::device::cuda {

namespace {

using Result = std::vector<TypedShape>;
using Rule = std::function<Result(const GraphIr&, const Node&)>;

const Value& input_of(const GraphIr& graph, const Node& node, size_t i) {
    if (node.input(i) == kAbsent) {
        graph.fail(node, fmt::format("no input {}", i), "it to be present");
    }
    return graph.values[node.input(i)];
}

Result same(const GraphIr& graph, const Node& node) {
    const Value& x = input_of(graph, node, 0);
    return {{x.dtype, x.shape}};
}

Result broadcast(const GraphIr& graph, const Node& node) {
    Shape shape = input_of(graph, node, 0).shape;
    for (size_t i = 1; i < node.inputs.size(); ++i) {
        const Shape& other = input_of(graph, node, i).shape;
        for (size_t k = 0; k < std::min(shape.size(), other.size()); ++k) {
            const int64_t a = shape[shape.size() - 1 - k];
            const int64_t b = other[other.size() - 1 - k];
            if (a != b && a != 1 && b != 1) graph.fail(node, "these shapes", "ones that broadcast");
        }
        shape = broadcast_shapes(shape, other);
    }
    return {{input_of(graph, node, node.op == "Where" ? 1 : 0).dtype, shape}};
}

Result compare(const GraphIr& graph, const Node& node) {
    return {{DType::boolean, broadcast(graph, node)[0].second}};
}

Result windowed(const GraphIr& graph, const Node& node) {
    const Value& x = input_of(graph, node, 0);
    const Window window = window_of(graph, node);
    Shape shape{x.shape[0], x.shape[1]};
    if (node.op == "Conv") {
        const Shape& w = input_of(graph, node, 1).shape;
        if (window.groups > w[0] || x.shape[1] != w[1] * window.groups ||
            w[0] % window.groups != 0) {
            graph.fail(node, "these channels", "group * weight channels");
        }
        shape[1] = w[0];
    }
    for (size_t i = 0; i < window.dims(); ++i) {
        const int64_t reach = window.dilation[i] * (window.kernel[i] - 1) + 1;
        const int64_t room = x.shape[i + 2] + window.pad_begin[i] + window.pad_end[i] - reach;
        if (room < 0) graph.fail(node, "an input smaller than the window", "a larger one");
        shape.push_back(room / window.stride[i] + 1);
    }
    return {{x.dtype, shape}};
}

Result gemm(const GraphIr& graph, const Node& node) {
    const Value& a = input_of(graph, node, 0);
    const Value& b = input_of(graph, node, 1);
    if (a.shape.size() != 2 || b.shape.size() != 2) graph.fail(node, "these ranks", "2 and 2");
    const bool ta = node.integer("transA", 0) != 0;
    const bool tb = node.integer("transB", 0) != 0;
    if (a.shape[ta ? 0 : 1] != b.shape[tb ? 1 : 0])
        graph.fail(node, "these shapes", "equal inner ones");
    return {{a.dtype, {a.shape[ta ? 1 : 0], b.shape[tb ? 0 : 1]}}};
}

Result matmul(const GraphIr& graph, const Node& node) {
    const Value& a = input_of(graph, node, 0);
    const Value& b = input_of(graph, node, 1);
    const size_t ra = a.shape.size();
    const size_t rb = b.shape.size();
    if (ra < 2 || rb < 2 || a.shape[ra - 1] != b.shape[rb - 2]) {
        graph.fail(node, "these shapes", "matrices with equal inner extents");
    }
    Shape shape = broadcast_shapes({a.shape.begin(), a.shape.end() - 2},
                                   {b.shape.begin(), b.shape.end() - 2});
    shape.push_back(a.shape[ra - 2]);
    shape.push_back(b.shape[rb - 1]);
    return {{a.dtype, shape}};
}

Result reduce(const GraphIr& graph, const Node& node) {
    const Value& x = input_of(graph, node, 0);
    const auto axes = reduced_axes(graph, node);
    const bool keep = node.op == "GlobalAveragePool" || node.integer("keepdims", 1) != 0;
    Shape shape;
    for (size_t i = 0; i < x.shape.size(); ++i) {
        if (std::ranges::find(axes, static_cast<int64_t>(i)) == axes.end()) {
            shape.push_back(x.shape[i]);
        } else if (keep) {
            shape.push_back(1);
        }
    }
    return {{x.dtype, shape}};
}

Result concat(const GraphIr& graph, const Node& node) {
    const Value& first = input_of(graph, node, 0);
    Shape shape = first.shape;
    const auto axis =
        static_cast<size_t>(normal_axis(graph, node, node.integer("axis", 0), shape.size()));
    for (size_t i = 1; i < node.inputs.size(); ++i) {
        Shape other = input_of(graph, node, i).shape;
        if (other.size() != shape.size()) graph.fail(node, "different ranks", "equal ones");
        shape[axis] += other[axis];
        other[axis] = shape[axis];
        if (other != shape) graph.fail(node, "these shapes", "equal ones but for the axis");
    }
    return {{first.dtype, shape}};
}

Result reshape(const GraphIr& graph, const Node& node) {
    const Value& x = input_of(graph, node, 0);
    Shape shape = graph.constant_integers(node, 1);
    int64_t known = 1;
    for (size_t i = 0; i < shape.size(); ++i) {
        if (shape[i] == 0 && node.integer("allowzero", 0) == 0 && i < x.shape.size()) {
            shape[i] = x.shape[i];
        }
        if (shape[i] >= 0) known *= shape[i];
    }
    for (auto& extent : shape) {
        if (extent < 0) extent = known == 0 ? 0 : x.count() / known;
    }
    if (element_count(shape) != x.count()) graph.fail(node, to_string(shape), "as many elements");
    return {{x.dtype, shape}};
}

Result flatten(const GraphIr& graph, const Node& node) {
    const Value& x = input_of(graph, node, 0);
    int64_t axis = node.integer("axis", 1);
    if (axis < 0) axis += static_cast<int64_t>(x.shape.size());
    Shape shape{1, 1};
    for (size_t i = 0; i < x.shape.size(); ++i) {
        shape[static_cast<int64_t>(i) < axis ? 0 : 1] *= x.shape[i];
    }
    return {{x.dtype, shape}};
}

std::vector<int64_t> listed_axes(const GraphIr& graph, const Node& node, size_t rank) {
    auto axes =
        node.input(1) != kAbsent ? graph.constant_integers(node, 1) : node.integers("axes", {});
    for (auto& axis : axes) axis = normal_axis(graph, node, axis, rank);
    std::ranges::sort(axes);
    return axes;
}

Result unsqueeze(const GraphIr& graph, const Node& node) {
    const Value& x = input_of(graph, node, 0);
    const size_t added = node.input(1) != kAbsent ? graph.constant_integers(node, 1).size()
                                                  : node.integers("axes", {}).size();
    Shape shape = x.shape;
    for (const int64_t axis : listed_axes(graph, node, x.shape.size() + added)) {
        shape.insert(shape.begin() + axis, 1);
    }
    return {{x.dtype, shape}};
}

Result squeeze(const GraphIr& graph, const Node& node) {
    const Value& x = input_of(graph, node, 0);
    auto axes = listed_axes(graph, node, x.shape.size());
    Shape shape;
    for (size_t i = 0; i < x.shape.size(); ++i) {
        const bool listed = std::ranges::find(axes, static_cast<int64_t>(i)) != axes.end();
        if (listed && x.shape[i] != 1) graph.fail(node, "an extent above 1", "1");
        if (!(listed || (axes.empty() && x.shape[i] == 1))) shape.push_back(x.shape[i]);
    }
    return {{x.dtype, shape}};
}

Result transpose(const GraphIr& graph, const Node& node) {
    const Value& x = input_of(graph, node, 0);
    std::vector<int64_t> reversed;
    for (size_t i = x.shape.size(); i > 0; --i) reversed.push_back(static_cast<int64_t>(i) - 1);
    Shape shape;
    for (const int64_t axis : node.integers("perm", reversed)) {
        shape.push_back(
            x.shape[static_cast<size_t>(normal_axis(graph, node, axis, x.shape.size()))]);
    }
    if (shape.size() != x.shape.size() || element_count(shape) != x.count()) {
        graph.fail(node, "this perm", "every axis once");
    }
    return {{x.dtype, shape}};
}

Result expand(const GraphIr& graph, const Node& node) {
    const Value& x = input_of(graph, node, 0);
    return {{x.dtype, broadcast_shapes(x.shape, graph.constant_integers(node, 1))}};
}

Result tile(const GraphIr& graph, const Node& node) {
    const Value& x = input_of(graph, node, 0);
    const auto repeats = graph.constant_integers(node, 1);
    Shape shape = x.shape;
    if (repeats.size() != shape.size())
        graph.fail(node, "repeats of another length", "one per axis");
    for (size_t i = 0; i < shape.size(); ++i) shape[i] *= repeats[i];
    return {{x.dtype, shape}};
}

Result gather(const GraphIr& graph, const Node& node) {
    const Value& x = input_of(graph, node, 0);
    const Value& at = input_of(graph, node, 1);
    const int64_t axis = normal_axis(graph, node, node.integer("axis", 0), x.shape.size());
    Shape shape(x.shape.begin(), x.shape.begin() + axis);
    shape.insert(shape.end(), at.shape.begin(), at.shape.end());
    shape.insert(shape.end(), x.shape.begin() + axis + 1, x.shape.end());
    return {{x.dtype, shape}};
}

Result pixel_shuffle(const GraphIr& graph, const Node& node) {
    const Value& x = input_of(graph, node, 0);
    const int64_t block = node.integer("blocksize", 1);
    if (x.shape.size() != 4 || block < 1) graph.fail(node, "this shape", "[N,C,H,W]");
    Shape s = x.shape;
    if (node.op == "DepthToSpace") {
        if (s[1] % (block * block) != 0)
            graph.fail(node, "these channels", "a multiple of blocksize^2");
        return {{x.dtype, {s[0], s[1] / (block * block), s[2] * block, s[3] * block}}};
    }
    if (s[2] % block != 0 || s[3] % block != 0)
        graph.fail(node, "this shape", "multiples of blocksize");
    return {{x.dtype, {s[0], s[1] * block * block, s[2] / block, s[3] / block}}};
}

Result split(const GraphIr& graph, const Node& node) {
    const Value& x = input_of(graph, node, 0);
    const auto sizes = split_sizes(graph, node);
    const auto axis =
        static_cast<size_t>(normal_axis(graph, node, node.integer("axis", 0), x.shape.size()));
    int64_t total = 0;
    Result result;
    for (const int64_t size : sizes) {
        Shape shape = x.shape;
        shape[axis] = size;
        total += size;
        result.emplace_back(x.dtype, shape);
    }
    if (total != x.shape[axis] || sizes.size() != node.outputs.size()) {
        graph.fail(node, "parts that do not fill the axis", "ones that do");
    }
    return result;
}

Result grid_sample(const GraphIr& graph, const Node& node) {
    const Value& x = input_of(graph, node, 0);
    const Value& grid = input_of(graph, node, 1);
    (void)sample_of(graph, node);
    Shape shape{x.shape[0], x.shape[1]};
    shape.insert(shape.end(), grid.shape.begin() + 1, grid.shape.end() - 1);
    return {{x.dtype, shape}};
}

Result slice(const GraphIr& graph, const Node& node) {
    return {{input_of(graph, node, 0).dtype, slice_of(graph, node).count}};
}

Result pad(const GraphIr& graph, const Node& node) {
    const Value& x = input_of(graph, node, 0);
    const PadRule rule = pad_of(graph, node);
    Shape shape = x.shape;
    for (size_t i = 0; i < shape.size(); ++i) shape[i] += rule.begin[i] + rule.end[i];
    return {{x.dtype, shape}};
}

Result range(const GraphIr& graph, const Node& node) {
    double bounds[3] = {};
    for (size_t i = 0; i < 3; ++i) {
        if (!graph.is_constant(node.input(i))) graph.fail(node, "varying bounds", "constants");
        bounds[i] = to_host_array(*graph.values[node.input(i)].constant).values.at(0);
    }
    const double count = bounds[2] == 0.0 ? 0.0 : (bounds[1] - bounds[0]) / bounds[2];
    const auto whole = static_cast<int64_t>(count);
    return {{input_of(graph, node, 0).dtype,
             {std::max<int64_t>(0, whole + (static_cast<double>(whole) < count ? 1 : 0))}}};
}

const std::unordered_map<std::string_view, Rule>& rules() {
    static const auto* const kRules = [] {
        auto* table = new std::unordered_map<std::string_view, Rule>;
        for (const auto* op : {"Identity",
                               "Neg",
                               "Abs",
                               "Sqrt",
                               "Exp",
                               "Log",
                               "Sin",
                               "Cos",
                               "Erf",
                               "Sigmoid",
                               "Tanh",
                               "Relu",
                               "LeakyRelu",
                               "Softplus",
                               "Mish",
                               "Elu",
                               "Floor",
                               "Ceil",
                               "Round",
                               "Reciprocal",
                               "Not",
                               "Clip",
                               "Softmax",
                               "LayerNormalization",
                               "InstanceNormalization",
                               "BatchNormalization",
                               "Gelu",
                               "HardSigmoid",
                               "Dropout"}) {
            (*table)[op] = same;
        }
        for (const auto* op : {"Add", "Sub", "Mul", "Div", "Pow", "Min", "Max", "Where", "PRelu",
                               "And", "Or", "Mod"}) {
            (*table)[op] = broadcast;
        }
        for (const auto* op : {"Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual"}) {
            (*table)[op] = compare;
        }
        for (const auto* op : {"Conv", "AveragePool", "MaxPool"}) (*table)[op] = windowed;
        for (const auto* op : {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL2",
                               "GlobalAveragePool"}) {
            (*table)[op] = reduce;
        }
        (*table)["Gemm"] = gemm;
        (*table)["MatMul"] = matmul;
        (*table)["Concat"] = concat;
        (*table)["Reshape"] = reshape;
        (*table)["Flatten"] = flatten;
        (*table)["Unsqueeze"] = unsqueeze;
        (*table)["Squeeze"] = squeeze;
        (*table)["Transpose"] = transpose;
        (*table)["Expand"] = expand;
        (*table)["Tile"] = tile;
        (*table)["Gather"] = gather;
        (*table)["DepthToSpace"] = pixel_shuffle;
        (*table)["SpaceToDepth"] = pixel_shuffle;
        (*table)["Split"] = split;
        (*table)["Slice"] = slice;
        (*table)["Pad"] = pad;
        (*table)["Range"] = range;
        (*table)["GridSample"] = grid_sample;
        (*table)["GridSample3D"] = grid_sample;
        (*table)["Resize"] = [](const GraphIr& graph, const Node& node) -> Result {
            return {{input_of(graph, node, 0).dtype, resize_of(graph, node).output}};
        };
        (*table)["Shape"] = [](const GraphIr& graph, const Node& node) -> Result {
            return {{DType::i64, {static_cast<int64_t>(input_of(graph, node, 0).shape.size())}}};
        };
        (*table)["Cast"] = [](const GraphIr& graph, const Node& node) -> Result {
            return {{dtype_of_onnx(graph, node, node.integer("to", 0)),
                     input_of(graph, node, 0).shape}};
        };
        (*table)["ConstantOfShape"] = [](const GraphIr& graph, const Node& node) -> Result {
            const auto value = node.attributes.find("value");
            const bool given = value != node.attributes.end() && value->second.tensor != nullptr;
            return {{given ? value->second.tensor->dtype() : DType::f32,
                     graph.constant_integers(node, 0)}};
        };
        return table;
    }();
    return *kRules;
}

size_t inputs_needed(std::string_view op) {
    if (op == "ConstantOfShape") return 1;
    if (op == "BatchNormalization") return 5;
    if (op == "Where" || op == "InstanceNormalization" || op == "Range") return 3;
    for (const auto* known : {"Add",          "Sub",
                              "Mul",          "Div",
                              "Pow",          "PRelu",
                              "And",          "Or",
                              "Mod",          "Equal",
                              "Less",         "Greater",
                              "LessOrEqual",  "GreaterOrEqual",
                              "Conv",         "Gemm",
                              "MatMul",       "Reshape",
                              "Expand",       "Tile",
                              "Gather",       "GridSample",
                              "GridSample3D", "LayerNormalization"}) {
        if (op == known) return 2;
    }
    return 1;
}

// Scale, shift and statistics have one value per channel, or per element of the normalised axes.
void check_parameters(const GraphIr& graph, const Node& node) {
    const Shape& x = graph.values[node.input(0)].shape;
    int64_t wanted = 0;
    size_t first = 1;
    if (node.op == "InstanceNormalization" || node.op == "BatchNormalization") {
        if (x.size() < 2) graph.fail(node, "this rank", "2 or more");
        wanted = x[1];
    } else if (node.op == "LayerNormalization") {
        wanted = 1;
        for (const int64_t axis : reduced_axes(graph, node)) wanted *= x[axis];
    } else if (node.op == "Conv" && node.input(2) != kAbsent) {
        wanted = graph.values[node.input(1)].shape.at(0);
        first = 2;
    }
    for (size_t i = first; wanted > 0 && i < node.inputs.size(); ++i) {
        if (node.input(i) != kAbsent && graph.values[node.input(i)].count() != wanted) {
            graph.fail(node, to_string(graph.values[node.input(i)].shape),
                       fmt::format("{} values", wanted));
        }
    }
}

}  // namespace

DType dtype_of_onnx(const GraphIr& graph, const Node& node, int64_t type) {
    switch (type) {
        case 1:
            return DType::f32;
        case 2:
            return DType::u8;
        case 3:
            return DType::i8;
        case 6:
            return DType::i32;
        case 7:
            return DType::i64;
        case 9:
            return DType::boolean;
        case 10:
            return DType::f16;
        case 11:
            return DType::f64;
        default:
            graph.fail(node, fmt::format("element type {}", type), "a number type");
    }
}

std::vector<TypedShape> infer_outputs(const GraphIr& graph, const Node& node) {
    const auto rule = rules().find(node.op);
    if (rule == rules().end()) graph.fail(node, "this operator", "one that the cuda provider has");
    for (size_t i = 0; i < inputs_needed(node.op); ++i) static_cast<void>(input_of(graph, node, i));
    if (node.outputs.empty()) graph.fail(node, "no outputs", "at least one");
    auto result = rule->second(graph, node);
    check_parameters(graph, node);
    return result;
}

}  // namespace newscaster::device::cuda
