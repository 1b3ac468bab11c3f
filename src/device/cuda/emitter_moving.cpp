// The operators of the kernel generator that only move values: index arithmetic, no memory.
#include <fmt/format.h>

#include "device/cuda/emitter.h"
#include "device/cuda/geometry.h"

namespace newscaster::device::cuda {

std::string Emitter::reshaped(int from, int to, const Indices& at) {
    const Shape& x = plan_.graph.values[from].shape;
    const Shape& y = plan_.graph.values[to].shape;
    // Axes that both shapes share from either end keep their index; the rest goes through a linear
    // number.
    size_t shared = 0;
    while (shared < x.size() && shared < y.size() && x[shared] == y[shared]) ++shared;
    size_t tail = 0;
    while (tail < x.size() - shared && tail < y.size() - shared &&
           x[x.size() - 1 - tail] == y[y.size() - 1 - tail]) {
        ++tail;
    }
    Indices result(at.begin(), at.begin() + static_cast<int64_t>(shared));
    std::string linear = "0";
    for (size_t i = shared; i < y.size() - tail; ++i) {
        if (y[i] == 1) continue;
        linear = linear == "0" ? at[i] : fmt::format("({}) * {} + {}", linear, y[i], at[i]);
    }
    const Indices rest = unravel(name_int(linear), Shape(x.begin() + static_cast<int64_t>(shared),
                                                         x.end() - static_cast<int64_t>(tail)));
    result.insert(result.end(), rest.begin(), rest.end());
    result.insert(result.end(), at.end() - static_cast<int64_t>(tail), at.end());
    return value(from, result);
}

std::string Emitter::moved(const Node& node, int to, const Indices& at) {
    const GraphIr& graph = plan_.graph;
    const int from = node.input(0);
    const Shape& x = graph.values[from].shape;
    const std::string& op = node.op;
    Indices index = at;
    if (op == "Reshape" || op == "Flatten" || op == "Squeeze" || op == "Unsqueeze") {
        return reshaped(from, to, at);
    }
    if (op == "Transpose") {
        std::vector<int64_t> reversed;
        for (size_t i = x.size(); i > 0; --i) reversed.push_back(static_cast<int64_t>(i) - 1);
        const auto perm = node.integers("perm", reversed);
        for (size_t i = 0; i < x.size(); ++i) {
            index[static_cast<size_t>(normal_axis(graph, node, perm[i], x.size()))] = at[i];
        }
    } else if (op == "Slice") {
        const SliceRange range = slice_of(graph, node);
        for (size_t i = 0; i < at.size(); ++i) {
            if (range.start[i] == 0 && range.step[i] == 1) continue;
            index[i] = at[i] == "0"
                           ? fmt::format("{}", range.start[i])
                           : fmt::format("{} + {} * ({})", range.start[i], at[i], range.step[i]);
        }
    } else if (op == "Split") {
        const auto sizes = split_sizes(graph, node);
        const auto axis =
            static_cast<size_t>(normal_axis(graph, node, node.integer("axis", 0), x.size()));
        int64_t first = 0;
        for (size_t i = 0; node.outputs[i] != to; ++i) first += sizes[i];
        index[axis] =
            at[axis] == "0" ? fmt::format("{}", first) : fmt::format("{} + {}", first, at[axis]);
    } else if (op == "Expand") {
        return operand(node, 0, at);
    } else if (op == "Tile") {
        for (size_t i = 0; i < at.size(); ++i) {
            if (x[i] != graph.values[to].shape[i]) index[i] = fmt::format("{} % {}", at[i], x[i]);
        }
    } else if (op == "DepthToSpace" || op == "SpaceToDepth") {
        const int64_t b = node.integer("blocksize", 1);
        if (op == "DepthToSpace") {
            const std::string by = name_int(fmt::format("{} % {}", at[2], b));
            const std::string bx = name_int(fmt::format("{} % {}", at[3], b));
            index[1] = node.text("mode", "DCR") == "CRD"
                           ? fmt::format("({} * {} + {}) * {} + {}", at[1], b, by, b, bx)
                           : fmt::format("({} * {} + {}) * {} + {}", by, b, bx,
                                         graph.values[to].shape[1], at[1]);
            index[2] = fmt::format("{} / {}", at[2], b);
            index[3] = fmt::format("{} / {}", at[3], b);
        } else {
            const std::string block = name_int(fmt::format("{} / {}", at[1], x[1]));
            index[1] = fmt::format("{} % {}", at[1], x[1]);
            index[2] = fmt::format("{} * {} + {} / {}", at[2], b, block, b);
            index[3] = fmt::format("{} * {} + {} % {}", at[3], b, block, b);
        }
    } else {
        graph.fail(node, "this operator", "one that the cuda provider has a kernel for");
    }
    return value(from, index);
}

// Whether an index is below a limit, where what is known of the lanes answers that.
std::optional<bool> Emitter::is_below(const std::string& index, int64_t limit) {
    const auto form = forms_.find(index);
    if (form == forms_.end() || !form->second.shift) return std::nullopt;
    const int64_t base = limit - *form->second.shift;
    if (assumed_ && assumed_->second <= base) return true;
    if (assumed_ && assumed_->first >= base) return false;
    if (base % lanes_->width == 0) splits_.insert(base);
    return std::nullopt;
}

// index < limit, as one question for all lanes where they agree.
std::string Emitter::below(const std::string& index, int64_t limit) const {
    const auto form = forms_.find(index);
    const bool together = form != forms_.end() && limit % form->second.count == 0;
    return fmt::format("{} < {}", together ? form->second.first : index, limit);
}

std::string Emitter::concat(const Node& node, int to, const Indices& at) {
    const Value& target = plan_.graph.values[to];
    const auto axis = static_cast<size_t>(
        normal_axis(plan_.graph, node, node.integer("axis", 0), target.shape.size()));
    struct Part {
        int value;
        int64_t first, last;
    };
    std::vector<Part> parts;  // those that the index may be in
    int64_t first = 0;
    for (const int input : node.inputs) {
        const int64_t last = first + plan_.graph.values[input].shape[axis];
        const bool past = first > 0 && is_below(at[axis], first) == true;
        if (!past && is_below(at[axis], last) != false) parts.push_back({input, first, last});
        first = last;
    }
    const auto read = [&](const Part& part) {
        Indices index = at;
        if (part.first > 0) index[axis] = fmt::format("{} - {}", at[axis], part.first);
        return value(part.value, index);
    };
    if (parts.size() == 1) return read(parts[0]);
    std::string result = fresh("t");
    body_ += fmt::format("{} {};\n", c_type(target.dtype), result);
    for (size_t i = 0; i < parts.size(); ++i) {
        const bool final = i + 1 == parts.size();
        open(fmt::format("{}{}", i == 0 ? "" : "else ",
                         final ? "" : fmt::format("if ({})", below(at[axis], parts[i].last))));
        const std::string part = read(parts[i]);
        body_ += fmt::format("{} = {};\n", result, part);
        close();
    }
    return result;
}

std::string Emitter::pad(const Node& node, int to, const Indices& at) {
    const PadRule rule = pad_of(plan_.graph, node);
    const Value& target = plan_.graph.values[to];
    const Shape& x = plan_.graph.values[node.input(0)].shape;
    Indices index = at;
    std::string inside;
    for (size_t i = 0; i < at.size(); ++i) {
        if (rule.begin[i] == 0 && rule.end[i] == 0) continue;
        index[i] = name_int(fmt::format("{} - ({})", at[i], rule.begin[i]));
        if (rule.mode == "edge")
            index[i] = name_int(fmt::format("nc_clamp({}, {})", index[i], x[i] - 1));
        if (rule.mode == "reflect") {
            index[i] = name_int(fmt::format("{0} - abs({0} - abs({1}))", x[i] - 1, index[i]));
        }
        inside += fmt::format("{}(unsigned){} < {}u", inside.empty() ? "" : " && ", index[i], x[i]);
    }
    if (inside.empty() || rule.mode != "constant") return value(node.input(0), index);
    std::string result = fresh("t");
    body_ += fmt::format("{} {} = {};\n", c_type(target.dtype), result, float_literal(rule.value));
    open(fmt::format("if ({})", inside));
    const std::string part = value(node.input(0), index);
    body_ += fmt::format("{} = {};\n", result, part);
    close();
    return result;
}

std::string Emitter::gather(const Node& node, const Indices& at) {
    const Shape& x = plan_.graph.values[node.input(0)].shape;
    const auto axis =
        static_cast<size_t>(normal_axis(plan_.graph, node, node.integer("axis", 0), x.size()));
    const Value& picks = plan_.graph.values[node.input(1)];
    const auto first = at.begin() + static_cast<int64_t>(axis);
    const auto last = first + static_cast<int64_t>(picks.shape.size());
    std::string pick;
    if (picks.constant != nullptr && picks.count() == 1) {
        const int64_t fixed = to_integers(*picks.constant).at(0);
        const int64_t index = fixed < 0 ? fixed + x[axis] : fixed;
        if (index < 0 || index >= x[axis]) {
            plan_.graph.fail(node, fmt::format("index {}", fixed),
                             fmt::format("one below {}", x[axis]));
        }
        pick = fmt::format("{}", index);
    } else {
        const std::string given = value(node.input(1), Indices(first, last));
        pick = name_int(fmt::format("nc_wrap((int){}, {})", given, x[axis]));
    }
    Indices index(at.begin(), first);
    index.push_back(pick);
    index.insert(index.end(), last, at.end());
    return value(node.input(0), index);
}

}  // namespace newscaster::device::cuda
