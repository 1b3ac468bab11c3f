#include "device/cuda/host_eval.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <string_view>
#include <unordered_map>

#include "device/cuda/geometry.h"
#include "device/cuda/host_eval_nn.h"
#include "device/cuda/shape_inference.h"

namespace newscaster::device::cuda {

namespace {

using Inputs = std::span<const HostArray* const>;

double unary(std::string_view op, const Node& node, double x) {
    if (op == "Identity" || op == "Dropout") return x;
    if (op == "Neg") return -x;
    if (op == "Abs") return std::abs(x);
    if (op == "Sqrt") return std::sqrt(x);
    if (op == "Exp") return std::exp(x);
    if (op == "Log") return std::log(x);
    if (op == "Sin") return std::sin(x);
    if (op == "Cos") return std::cos(x);
    if (op == "Erf") return std::erf(x);
    if (op == "Sigmoid") return 1.0 / (1.0 + std::exp(-x));
    if (op == "Tanh") return std::tanh(x);
    if (op == "Relu") return x > 0.0 ? x : 0.0;
    if (op == "LeakyRelu")
        return x < 0.0 ? x * static_cast<double>(node.number("alpha", 0.01F)) : x;
    if (op == "Elu")
        return x < 0.0 ? std::expm1(x) * static_cast<double>(node.number("alpha", 1.0F)) : x;
    if (op == "Softplus") return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
    if (op == "Mish") {
        return x * std::tanh(std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))));
    }
    if (op == "Floor") return std::floor(x);
    if (op == "Ceil") return std::ceil(x);
    if (op == "Round") return std::nearbyint(x);
    if (op == "Reciprocal") return 1.0 / x;
    if (op == "Not") return x == 0.0 ? 1.0 : 0.0;
    if (op == "Gelu") {
        if (node.text("approximate", "none") == "tanh") {
            return 0.5 * x * (1.0 + std::tanh(std::sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x)));
        }
        return 0.5 * x * (1.0 + std::erf(x / std::sqrt(2.0)));
    }
    const double t = static_cast<double>(node.number("alpha", 0.2F)) * x +
                     static_cast<double>(node.number("beta", 0.5F));
    return std::min(1.0, std::max(0.0, t));  // HardSigmoid
}

double binary(std::string_view op, bool integer, double a, double b) {
    if (op == "Add") return a + b;
    if (op == "Sub") return a - b;
    if (op == "Mul") return a * b;
    if (op == "Div") return integer ? std::trunc(a / b) : a / b;
    if (op == "Pow") return std::pow(a, b);
    if (op == "Min") return std::min(a, b);
    if (op == "Max") return std::max(a, b);
    if (op == "Mod") return std::fmod(std::fmod(a, b) + b, b);
    if (op == "PRelu") return a < 0.0 ? a * b : a;
    if (op == "And") return a != 0.0 && b != 0.0 ? 1.0 : 0.0;
    if (op == "Or") return a != 0.0 || b != 0.0 ? 1.0 : 0.0;
    if (op == "Equal") return a == b ? 1.0 : 0.0;
    if (op == "Less") return a < b ? 1.0 : 0.0;
    if (op == "Greater") return a > b ? 1.0 : 0.0;
    if (op == "LessOrEqual") return a <= b ? 1.0 : 0.0;
    return a >= b ? 1.0 : 0.0;  // GreaterOrEqual
}

bool is_binary(std::string_view op) {
    for (const auto* known :
         {"Add", "Sub", "Mul", "Div", "Pow", "Min", "Max", "Mod", "PRelu", "And", "Or", "Equal",
          "Less", "Greater", "LessOrEqual", "GreaterOrEqual"}) {
        if (op == known) return true;
    }
    return false;
}

bool is_view(std::string_view op) {
    return op == "Reshape" || op == "Flatten" || op == "Squeeze" || op == "Unsqueeze";
}

HostArray elementwise(const Node& node, Inputs in, HostArray y) {
    Odometer at(y.shape);
    for (auto& value : y.values) {
        if (node.op == "Where") {
            value = in[0]->values[broadcast_offset(in[0]->shape, at.index())] != 0.0
                        ? in[1]->values[broadcast_offset(in[1]->shape, at.index())]
                        : in[2]->values[broadcast_offset(in[2]->shape, at.index())];
        } else if (node.op == "Clip") {
            value = in[0]->values[broadcast_offset(in[0]->shape, at.index())];
            const auto bound = [&](size_t i, const char* name, double otherwise) {
                if (in.size() > i && in[i] != nullptr) return in[i]->values[0];
                const float given = node.number(name, std::numeric_limits<float>::quiet_NaN());
                return std::isnan(given) ? otherwise : static_cast<double>(given);
            };
            value = std::max(value, bound(1, "min", -std::numeric_limits<double>::infinity()));
            value = std::min(value, bound(2, "max", std::numeric_limits<double>::infinity()));
        } else {
            value = in[0]->values[broadcast_offset(in[0]->shape, at.index())];
            const bool integer = in[0]->dtype == DType::i64 || in[0]->dtype == DType::i32;
            for (size_t i = 1; i < in.size(); ++i) {
                value = binary(node.op, integer, value,
                               in[i]->values[broadcast_offset(in[i]->shape, at.index())]);
            }
        }
        at.next();
    }
    return y;
}

// Operators that only move values: the source element of one output element, -1 for a fill.
int64_t source_of(const GraphIr& graph, const Node& node, const Shape& x, const Shape& y,
                  std::vector<int64_t> at) {
    if (node.op == "Transpose") {
        std::vector<int64_t> reversed;
        for (size_t i = x.size(); i > 0; --i) reversed.push_back(static_cast<int64_t>(i) - 1);
        const auto perm = node.integers("perm", reversed);
        std::vector<int64_t> from(x.size());
        for (size_t i = 0; i < x.size(); ++i) {
            from[static_cast<size_t>(normal_axis(graph, node, perm[i], x.size()))] = at[i];
        }
        return linear_offset(x, from);
    }
    if (node.op == "Slice") {
        const SliceRange range = slice_of(graph, node);
        for (size_t i = 0; i < at.size(); ++i) at[i] = range.start[i] + at[i] * range.step[i];
        return linear_offset(x, at);
    }
    if (node.op == "Expand") return broadcast_offset(x, at);
    if (node.op == "Tile") {
        for (size_t i = 0; i < at.size(); ++i) at[i] %= x[i];
        return linear_offset(x, at);
    }
    if (node.op == "Pad") {
        const PadRule rule = pad_of(graph, node);
        for (size_t i = 0; i < at.size(); ++i) {
            at[i] -= rule.begin[i];
            const int64_t last = x[i] - 1;
            if (rule.mode == "edge") at[i] = std::clamp<int64_t>(at[i], 0, last);
            if (rule.mode == "reflect") at[i] = last - std::abs(last - std::abs(at[i]));
            if (at[i] < 0 || at[i] > last) return -1;
        }
        return linear_offset(x, at);
    }
    const int64_t b = node.integer("blocksize", 1);
    if (node.op == "DepthToSpace") {
        const int64_t by = at[2] % b;
        const int64_t bx = at[3] % b;
        const int64_t c = node.text("mode", "DCR") == "CRD" ? (at[1] * b + by) * b + bx
                                                            : (by * b + bx) * y[1] + at[1];
        return linear_offset(x, {at[0], c, at[2] / b, at[3] / b});
    }
    const int64_t block = at[1] / x[1];  // SpaceToDepth
    return linear_offset(x, {at[0], at[1] % x[1], at[2] * b + block / b, at[3] * b + block % b});
}

HostArray move(const GraphIr& graph, const Node& node, Inputs in, HostArray y) {
    Odometer at(y.shape);
    for (auto& value : y.values) {
        const int64_t from = source_of(graph, node, in[0]->shape, y.shape, at.index());
        value = from < 0 ? pad_of(graph, node).value : in[0]->values[from];
        at.next();
    }
    return y;
}

HostArray concat(const GraphIr& graph, const Node& node, Inputs in, HostArray y) {
    const auto axis =
        static_cast<size_t>(normal_axis(graph, node, node.integer("axis", 0), y.shape.size()));
    Odometer at(y.shape);
    for (auto& value : y.values) {
        auto index = at.index();
        size_t part = 0;
        while (index[axis] >= in[part]->shape[axis]) index[axis] -= in[part++]->shape[axis];
        value = in[part]->values[linear_offset(in[part]->shape, index)];
        at.next();
    }
    return y;
}

HostArray gather(const GraphIr& graph, const Node& node, Inputs in, HostArray y) {
    const Shape& x = in[0]->shape;
    const auto axis =
        static_cast<size_t>(normal_axis(graph, node, node.integer("axis", 0), x.size()));
    const size_t span = in[1]->shape.size();
    Odometer at(y.shape);
    for (auto& value : y.values) {
        const auto& index = at.index();
        const std::vector<int64_t> inner(index.begin() + static_cast<int64_t>(axis),
                                         index.begin() + static_cast<int64_t>(axis + span));
        auto pick = static_cast<int64_t>(in[1]->values[linear_offset(in[1]->shape, inner)]);
        if (pick < 0) pick += x[axis];
        if (pick < 0 || pick >= x[axis]) {
            graph.fail(node, fmt::format("index {}", pick), fmt::format("0 to {}", x[axis] - 1));
        }
        std::vector<int64_t> from(index.begin(), index.begin() + static_cast<int64_t>(axis));
        from.push_back(pick);
        from.insert(from.end(), index.begin() + static_cast<int64_t>(axis + span), index.end());
        value = in[0]->values[linear_offset(x, from)];
        at.next();
    }
    return y;
}

std::vector<HostArray> split(const GraphIr& graph, const Node& node, const HostArray& x,
                             std::vector<HostArray> ys) {
    const auto axis =
        static_cast<size_t>(normal_axis(graph, node, node.integer("axis", 0), x.shape.size()));
    int64_t first = 0;
    for (auto& y : ys) {
        Odometer at(y.shape);
        for (auto& value : y.values) {
            auto index = at.index();
            index[axis] += first;
            value = x.values[linear_offset(x.shape, index)];
            at.next();
        }
        first += y.shape[axis];
    }
    return ys;
}

HostArray made(const Node& node, Inputs in, HostArray y) {
    if (node.op == "Range") {
        for (size_t i = 0; i < y.values.size(); ++i) {
            y.values[i] = in[0]->values[0] + static_cast<double>(i) * in[2]->values[0];
        }
        return y;
    }
    const auto value = node.attributes.find("value");  // ConstantOfShape
    const bool given = value != node.attributes.end() && value->second.tensor != nullptr;
    std::ranges::fill(y.values, given ? to_host_array(*value->second.tensor).values.at(0) : 0.0);
    return y;
}

HostArray cast(const HostArray& x, HostArray y) {
    const bool to_float = y.dtype == DType::f32 || y.dtype == DType::f16 || y.dtype == DType::f64;
    for (size_t i = 0; i < y.values.size(); ++i) {
        const double value = x.values[i];
        y.values[i] = y.dtype == DType::boolean ? (value != 0.0 ? 1.0 : 0.0)
                      : to_float                ? value
                                                : std::trunc(value);
    }
    return y;
}

template <typename T>
void store(std::byte* target, size_t i, T value) {
    std::memcpy(target + i * sizeof(T), &value, sizeof(T));
}

}  // namespace

HostArray to_host_array(const Tensor& tensor) {
    HostArray array{tensor.dtype(), tensor.shape(), {}};
    const auto copy = [&](const auto& values) {
        array.values.assign(values.begin(), values.end());
    };
    switch (tensor.dtype()) {
        case DType::i64:
            copy(tensor.as<int64_t>());
            break;
        case DType::i32:
            copy(tensor.as<int32_t>());
            break;
        case DType::f64:
            copy(tensor.as<double>());
            break;
        case DType::boolean:
            for (int64_t i = 0; i < tensor.size(); ++i) {
                array.values.push_back(tensor.data()[i] == std::byte{0} ? 0.0 : 1.0);
            }
            break;
        default: {
            const Tensor values = tensor.to_f32();
            copy(values.as<float>());
        }
    }
    return array;
}

Tensor to_tensor(const HostArray& array) {
    Tensor tensor(array.dtype, array.shape);
    for (size_t i = 0; i < array.values.size(); ++i) {
        const double value = array.values[i];
        switch (array.dtype) {
            case DType::f32:
                store(tensor.data(), i, static_cast<float>(value));
                break;
            case DType::f16:
                store(tensor.data(), i, float_to_half(static_cast<float>(value)));
                break;
            case DType::f64:
                store(tensor.data(), i, value);
                break;
            case DType::i64: {
                constexpr double kLimit = 9.2e18;
                const bool high = value > kLimit;
                store(tensor.data(), i,
                      high              ? std::numeric_limits<int64_t>::max()
                      : value < -kLimit ? std::numeric_limits<int64_t>::min()
                                        : static_cast<int64_t>(value));
                break;
            }
            case DType::i32:
                store(tensor.data(), i, static_cast<int32_t>(value));
                break;
            default:
                store(tensor.data(), i, static_cast<uint8_t>(static_cast<int>(value)));
        }
    }
    return tensor;
}

std::vector<HostArray> evaluate(const GraphIr& graph, const Node& node, Inputs in) {
    std::vector<HostArray> ys;
    for (const auto& [dtype, shape] : infer_outputs(graph, node)) {
        ys.push_back(
            {dtype, shape, std::vector<double>(static_cast<size_t>(element_count(shape)))});
    }
    HostArray& y = ys.at(0);
    const std::string& op = node.op;
    if (is_view(op)) {
        y.values = in[0]->values;
    } else if (is_binary(op) || op == "Where" || op == "Clip") {
        ys[0] = elementwise(node, in, std::move(y));
    } else if (op == "Cast") {
        ys[0] = cast(*in[0], std::move(y));
    } else if (op == "Concat") {
        ys[0] = concat(graph, node, in, std::move(y));
    } else if (op == "Gather") {
        ys[0] = gather(graph, node, in, std::move(y));
    } else if (op == "Split") {
        ys = split(graph, node, *in[0], std::move(ys));
    } else if (op == "Range" || op == "ConstantOfShape") {
        ys[0] = made(node, in, std::move(y));
    } else if (op == "Transpose" || op == "Slice" || op == "Expand" || op == "Tile" ||
               op == "Pad" || op == "DepthToSpace" || op == "SpaceToDepth") {
        ys[0] = move(graph, node, in, std::move(y));
    } else if (!evaluate_nn(graph, node, in, y)) {
        for (size_t i = 0; i < y.values.size(); ++i)
            y.values[i] = unary(op, node, in[0]->values[i]);
    }
    return ys;
}

}  // namespace newscaster::device::cuda
