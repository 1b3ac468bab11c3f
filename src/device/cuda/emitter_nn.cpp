// The network operators of the kernel generator: sampling, windows, products and reductions.
#include <fmt/format.h>

#include <algorithm>

#include "device/cuda/emitter.h"

namespace newscaster::device::cuda {

// Weighted sum over the corners of a cell; lows[i] and highs[i] are indices of axis i with weights
// 1 - weights[i] and weights[i]. Axes with an empty weight keep their index in `at`.
std::string Emitter::fused(const std::vector<std::string>& lows,
                           const std::vector<std::string>& highs,
                           const std::vector<std::string>& weights, int data, Indices at) {
    std::vector<size_t> axes;
    for (size_t i = 0; i < weights.size(); ++i) {
        if (!weights[i].empty()) axes.push_back(i);
    }
    std::string sum;
    for (size_t corner = 0; corner < size_t{1} << axes.size(); ++corner) {
        std::string weight;
        for (size_t k = 0; k < axes.size(); ++k) {
            const size_t axis = axes[k];
            const bool high = (corner >> (axes.size() - 1 - k) & 1U) != 0;
            at[axis] = high ? highs[axis] : lows[axis];
            weight += fmt::format("{}{}", weight.empty() ? "" : " * ",
                                  high ? weights[axis] : fmt::format("(1.0f - {})", weights[axis]));
        }
        const std::string part = value(data, at);
        sum += fmt::format("{}{} * {}", sum.empty() ? "" : " + ", weight.empty() ? "1.0f" : weight,
                           part);
    }
    return "(" + sum + ")";
}

std::string Emitter::resize(const Node& node, int to, const Indices& at) {
    Indices index = at;
    if (const auto factors = repeats_of(plan_.graph, node); !factors.empty()) {
        for (size_t i = 0; i < factors.size(); ++i) {
            if (factors[i] > 1) index[i] = name_int(fmt::format("{} / {}", at[i], factors[i]));
        }
        return value(node.input(0), index);
    }
    const ResizeRule rule = resize_of(plan_.graph, node);
    const Shape& x = plan_.graph.values[node.input(0)].shape;
    const Shape& y = plan_.graph.values[to].shape;
    std::vector<std::string> lows(x.size());
    std::vector<std::string> highs(x.size());
    std::vector<std::string> weights(x.size());
    for (size_t i = 0; i < x.size(); ++i) {
        if (x[i] == y[i] && rule.step[i] == 1.0 && rule.offset[i] == 0.0) continue;
        const std::string raw =
            fmt::format("(float){} * {} + {}", at[i], float_literal(rule.step[i]),
                        float_literal(rule.offset[i]));
        const int64_t last = x[i] - 1;
        if (!rule.linear) {
            const std::string& mode = rule.nearest_mode;
            const bool down = mode == "floor" || mode == "round_prefer_ceil";
            const double shift = mode == "floor" || mode == "ceil" ? 0.0 : 0.5;
            const std::string picked =
                fmt::format("{}f({} {} {})", down ? "floor" : "ceil", raw, down ? "+" : "-",
                            float_literal(shift + kNearestSlack));
            index[i] = name_int(fmt::format("nc_clamp((int){}, {})", picked, last));
            continue;
        }
        const std::string place =
            define("float", fmt::format("fminf(fmaxf({}, 0.0f), {})", raw,
                                        float_literal(static_cast<double>(last))));
        lows[i] = name_int(fmt::format("(int){}", place));
        highs[i] = name_int(fmt::format("min({} + 1, {})", lows[i], last));
        weights[i] = define("float", fmt::format("{} - (float){}", place, lows[i]));
    }
    if (!rule.linear) return value(node.input(0), index);
    return fused(lows, highs, weights, node.input(0), index);
}

// Pixel coordinate of one grid value along spatial axis `axis`.
std::string Emitter::sample_axis(const Node& node, size_t axis, const std::string& grid) {
    const SampleRule rule = sample_of(plan_.graph, node);
    const auto size = static_cast<double>(plan_.graph.values[node.input(0)].shape[axis + 2]);
    const std::string raw =
        rule.align_corners
            ? fmt::format("({} + 1.0f) * {}", grid, float_literal(0.5 * (size - 1.0)))
            : fmt::format("({} + 1.0f) * {} - 0.5f", grid, float_literal(0.5 * size));
    std::string place = define("float", raw);
    if (rule.padding == "reflection") {
        place = define(
            "float", rule.align_corners
                         ? fmt::format("nc_reflect({}, 0.0f, {})", place, float_literal(size - 1.0))
                         : fmt::format("nc_reflect({}, -0.5f, {})", place, float_literal(size)));
    }
    // Outside by a whole pixel is as good as outside by many; this keeps the conversion to int
    // safe.
    const bool zeros = rule.padding == "zeros";
    return define("float", fmt::format("fminf(fmaxf({}, {}), {})", place, zeros ? "-1.0f" : "0.0f",
                                       float_literal(zeros ? size : size - 1.0)));
}

std::string Emitter::grid_sample(const Node& node, int to, const Indices& at) {
    const SampleRule rule = sample_of(plan_.graph, node);
    const Shape& x = plan_.graph.values[node.input(0)].shape;
    const size_t dims = x.size() - 2;
    (void)to;
    std::vector<std::string> low(dims);
    std::vector<std::string> fraction(dims);
    for (size_t i = 0; i < dims; ++i) {
        Indices grid_at{at[0]};
        grid_at.insert(grid_at.end(), at.begin() + 2, at.end());
        grid_at.push_back(fmt::format("{}", dims - 1 - i));  // the grid holds x, y, (z)
        const std::string place = sample_axis(node, i, value(node.input(1), grid_at));
        const std::string base = define("float", rule.nearest ? fmt::format("rintf({})", place)
                                                              : fmt::format("floorf({})", place));
        low[i] = define("int", fmt::format("(int){}", base));
        fraction[i] = rule.nearest ? "" : define("float", fmt::format("{} - {}", place, base));
    }
    std::string sum;
    const size_t corners = rule.nearest ? 1 : size_t{1} << dims;
    for (size_t corner = 0; corner < corners; ++corner) {
        Indices from = at;
        std::string weight;
        std::string inside;
        for (size_t i = 0; i < dims; ++i) {
            const bool high = (corner >> (dims - 1 - i) & 1U) != 0;
            const std::string index = high ? name_int(fmt::format("{} + 1", low[i])) : low[i];
            from[i + 2] = name_int(fmt::format("nc_clamp({}, {})", index, x[i + 2] - 1));
            if (!rule.nearest) {
                weight += fmt::format("{} * ",
                                      high ? fraction[i] : fmt::format("(1.0f - {})", fraction[i]));
            }
            inside += fmt::format("{}(unsigned){} < {}u", i == 0 ? "" : " && ", index, x[i + 2]);
        }
        const std::string part = value(node.input(0), from);
        // Clamped corners have weight 0 with border and reflection; with zeros they count as 0.
        const std::string taken =
            rule.padding == "zeros" ? fmt::format("({} ? {} : 0.0f)", inside, part) : part;
        sum += fmt::format("{}{}{}", sum.empty() ? "" : " + ", weight, taken);
    }
    return "(" + sum + ")";
}

std::string Emitter::conv(const Node& node, int to, const Indices& at) {
    const Window window = window_of(plan_.graph, node);
    const Shape& x = plan_.graph.values[node.input(0)].shape;
    const Shape& w = plan_.graph.values[node.input(1)].shape;
    std::string sum = fresh("t");
    body_ += fmt::format("float {} = 0.0f;\n", sum);
    const int64_t per_group = plan_.graph.values[to].shape[1] / window.groups;
    const std::string base =
        name_int(window.groups == 1 ? "0" : fmt::format("{} / {} * {}", at[1], per_group, w[1]));
    const std::string c = fresh("c");
    Indices from = at;
    Indices tap{at[1], c};
    open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", c, w[1]));
    from[1] = name_int(base == "0" ? c : fmt::format("{} + {}", base, c));
    std::string inside;
    for (size_t i = 0; i < window.dims(); ++i) {
        const std::string k = fresh("k");
        open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", k, window.kernel[i]));
        tap.push_back(k);
        from[i + 2] = name_int(fmt::format("{} * {} - {} + {} * {}", at[i + 2], window.stride[i],
                                           window.pad_begin[i], k, window.dilation[i]));
        if (window.pad_begin[i] + window.pad_end[i] > 0) {
            inside += fmt::format("{}(unsigned){} < {}u", inside.empty() ? "" : " && ", from[i + 2],
                                  x[i + 2]);
        }
    }
    open(inside.empty() ? "" : fmt::format("if ({})", inside));
    const std::string product =
        fmt::format("{} * {}", value(node.input(0), from), value(node.input(1), tap));
    body_ += fmt::format("{} += {};\n", sum, product);
    for (size_t i = 0; i < window.dims() + 2; ++i) close();
    return sum;
}

std::string Emitter::pool(const Node& node, const Indices& at) {
    const Window window = window_of(plan_.graph, node);
    const Shape& x = plan_.graph.values[node.input(0)].shape;
    const bool largest = node.op == "MaxPool";
    const bool count_pads = node.integer("count_include_pad", 0) != 0;
    std::string sum = fresh("t");
    const std::string count = fresh("t");
    body_ += fmt::format("float {} = {};\nfloat {} = 0.0f;\n", sum,
                         largest ? "__int_as_float(0xff800000)" : "0.0f", count);
    Indices from = at;
    std::string inside = "true";
    for (size_t i = 0; i < window.dims(); ++i) {
        const std::string k = fresh("k");
        body_ += "#pragma unroll\n";
        open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", k, window.kernel[i]));
        from[i + 2] = name_int(fmt::format("{} * {} - {} + {} * {}", at[i + 2], window.stride[i],
                                           window.pad_begin[i], k, window.dilation[i]));
        if (window.pad_begin[i] + window.pad_end[i] > 0) {
            inside += fmt::format(" && (unsigned){} < {}u", from[i + 2], x[i + 2]);
        }
    }
    if (count_pads) body_ += fmt::format("{} += 1.0f;\n", count);
    open(fmt::format("if ({})", inside));
    if (!count_pads) body_ += fmt::format("{} += 1.0f;\n", count);
    const std::string part = value(node.input(0), from);
    body_ += largest ? fmt::format("{0} = fmaxf({0}, {1});\n", sum, part)
                     : fmt::format("{} += {};\n", sum, part);
    for (size_t i = 0; i < window.dims() + 1; ++i) close();
    return largest ? sum : fmt::format("({} / {})", sum, count);
}

std::string Emitter::matmul(const Node& node, int to, const Indices& at) {
    const bool gemm = node.op == "Gemm";
    const bool ta = gemm && node.integer("transA", 0) != 0;
    const bool tb = gemm && node.integer("transB", 0) != 0;
    const Shape& a = plan_.graph.values[node.input(0)].shape;
    const int64_t inner = a[a.size() - (ta ? 2 : 1)];
    (void)to;
    std::string sum = fresh("t");
    body_ += fmt::format("float {} = 0.0f;\n", sum);
    const std::string k = fresh("k");
    open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", k, inner));
    Indices ia = at;
    Indices ib = at;
    const size_t r = at.size();
    ia[r - 1] = ta ? at[r - 2] : k;
    if (ta) ia[r - 2] = k;
    ib[r - 2] = tb ? at[r - 1] : k;
    if (tb) ib[r - 1] = k;
    const std::string product = fmt::format("{} * {}", operand(node, 0, ia), operand(node, 1, ib));
    body_ += fmt::format("{} += {};\n", sum, product);
    close();
    return sum;
}

std::string Emitter::reduce(const Node& node, int to, const Indices& at) {
    const Shape& x = plan_.graph.values[node.input(0)].shape;
    const auto axes = reduced_axes(plan_.graph, node);
    const bool kept = plan_.graph.values[to].shape.size() == x.size();
    const std::string& op = node.op;
    const bool picks = op == "ReduceMax" || op == "ReduceMin";
    std::string sum = fresh("t");
    body_ += fmt::format("float {} = {};\n", sum,
                         !picks              ? "0.0f"
                         : op == "ReduceMax" ? "__int_as_float(0xff800000)"
                                             : "__int_as_float(0x7f800000)");
    Indices from;
    size_t next = 0;
    int64_t count = 1;
    for (size_t i = 0; i < x.size(); ++i) {
        if (std::ranges::find(axes, static_cast<int64_t>(i)) == axes.end()) {
            from.push_back(at[kept ? i : next++]);
            continue;
        }
        const std::string k = fresh("k");
        open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", k, x[i]));
        from.push_back(k);
        count *= x[i];
    }
    const std::string part = value(node.input(0), from);
    body_ += op == "ReduceMax"   ? fmt::format("{0} = fmaxf({0}, {1});\n", sum, part)
             : op == "ReduceMin" ? fmt::format("{0} = fminf({0}, {1});\n", sum, part)
             : op == "ReduceL2"  ? fmt::format("{0} += {1} * {1};\n", sum, part)
                                 : fmt::format("{} += {};\n", sum, part);
    for (size_t i = 0; i < axes.size(); ++i) close();
    if (op == "ReduceL2") return fmt::format("sqrtf({})", sum);
    const bool mean = op == "ReduceMean" || op == "GlobalAveragePool";
    return mean ? fmt::format("({} * {})", sum, float_literal(1.0 / static_cast<double>(count)))
                : sum;
}

std::string Emitter::batch_norm(const Node& node, const Indices& at) {
    const Indices channel{at.size() > 1 ? at[1] : "0"};
    const std::string x = value(node.input(0), at);
    const std::string scale = value(node.input(1), channel);
    const std::string bias = value(node.input(2), channel);
    const std::string mean = value(node.input(3), channel);
    const std::string variance = value(node.input(4), channel);
    return fmt::format("(({} - {}) * ({} / sqrtf({} + {})) + {})", x, mean, scale, variance,
                       float_literal(static_cast<double>(node.number("epsilon", 1e-5F))), bias);
}

std::string Emitter::instance_apply(const Node& node, const Indices& at) {
    const std::string x = value(node.input(0), at);
    const std::string factor = value(node.input(1), {at[0], "0", at[1]});
    const std::string shift = value(node.input(1), {at[0], "1", at[1]});
    return fmt::format("({} * {} + {})", x, factor, shift);
}

// What a convolution's taps make of their own pixels, gathered: the second half of half_passes'
// per-tap convolution.
std::string Emitter::tap_sum(const Node& node, const Indices& at) {
    const Window window = window_of(plan_.graph, node);
    const Shape& x = plan_.graph.values[node.input(0)].shape;
    std::string sum = fresh("t");
    body_ += fmt::format("float {} = {};\n", sum, value(node.input(1), {at[1]}));
    const std::string row = fresh("k");
    const std::string column = fresh("k");
    open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", row, window.kernel[0]));
    open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", column, window.kernel[1]));
    const std::string y = name_int(fmt::format("{} - {} + {}", at[2], window.pad_begin[0], row));
    const std::string z = name_int(fmt::format("{} - {} + {}", at[3], window.pad_begin[1], column));
    open(fmt::format("if ((unsigned){} < {}u && (unsigned){} < {}u)", y, x[2], z, x[3]));
    const std::string channel =
        name_int(fmt::format("{} * {} + {} * {} + {}", at[1], window.kernel[0] * window.kernel[1],
                             row, window.kernel[1], column));
    const std::string part = value(node.input(0), {at[0], channel, y, z});
    body_ += fmt::format("{} += {};\n", sum, part);
    for (int block = 0; block < 3; ++block) close();
    return sum;
}

}  // namespace newscaster::device::cuda
