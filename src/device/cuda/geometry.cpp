#include "device/cuda/geometry.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "device/cuda/host_eval.h"

namespace newscaster::device::cuda {

int64_t normal_axis(const GraphIr& graph, const Node& node, int64_t axis, size_t rank) {
    const auto bound = static_cast<int64_t>(rank);
    if (axis < -bound || axis >= bound) {
        graph.fail(node, fmt::format("axis {}", axis), fmt::format("one of rank {}", rank));
    }
    return axis < 0 ? axis + bound : axis;
}

Window window_of(const GraphIr& graph, const Node& node) {
    const Shape& x = graph.values[node.input(0)].shape;
    Window window;
    const bool conv = node.op == "Conv";
    window.kernel = node.integers("kernel_shape", {});
    if (conv && x.size() > 2) {
        const Shape& w = graph.values[node.input(1)].shape;
        if (w.size() != x.size()) graph.fail(node, to_string(w), "weights of the input's rank");
        window.kernel.assign(w.begin() + 2, w.end());
    }
    const size_t dims = window.kernel.size();
    if (x.size() != dims + 2 || dims < 1 || dims > 3) {
        graph.fail(node, fmt::format("rank {}", x.size()), "1 to 3 spatial axes");
    }
    window.stride = node.integers("strides", std::vector<int64_t>(dims, 1));
    window.dilation = node.integers("dilations", std::vector<int64_t>(dims, 1));
    auto pads = node.integers("pads", std::vector<int64_t>(2 * dims, 0));
    if (pads.size() != 2 * dims || window.stride.size() != dims || window.dilation.size() != dims) {
        graph.fail(node, "lists of other lengths", "one pad pair, stride and dilation per axis");
    }
    const std::string automatic = node.text("auto_pad", "NOTSET");
    if (automatic != "NOTSET" && automatic != "VALID") {
        graph.fail(node, "auto_pad " + automatic, "NOTSET or VALID");
    }
    if (node.integer("ceil_mode", 0) != 0) graph.fail(node, "ceil_mode 1", "0");
    window.pad_begin.assign(pads.begin(), pads.begin() + static_cast<int64_t>(dims));
    window.pad_end.assign(pads.begin() + static_cast<int64_t>(dims), pads.end());
    window.groups = conv ? node.integer("group", 1) : 1;
    for (size_t i = 0; i < dims; ++i) {
        if (window.kernel[i] < 1 || window.stride[i] < 1 || window.dilation[i] < 1 ||
            window.pad_begin[i] < 0 || window.pad_end[i] < 0) {
            graph.fail(node, "a negative window parameter", "positive ones");
        }
    }
    if (window.groups < 1) graph.fail(node, fmt::format("group {}", window.groups), ">= 1");
    return window;
}

SliceRange slice_of(const GraphIr& graph, const Node& node) {
    const Shape& x = graph.values[node.input(0)].shape;
    const bool by_input = node.inputs.size() > 1;
    const auto starts = by_input ? graph.constant_integers(node, 1) : node.integers("starts", {});
    const auto ends = by_input ? graph.constant_integers(node, 2) : node.integers("ends", {});
    std::vector<int64_t> axes(starts.size());
    std::iota(axes.begin(), axes.end(), 0);
    if (node.input(3) != kAbsent) axes = graph.constant_integers(node, 3);
    if (!by_input) axes = node.integers("axes", axes);
    std::vector<int64_t> steps(starts.size(), 1);
    if (node.input(4) != kAbsent) steps = graph.constant_integers(node, 4);
    if (ends.size() != starts.size() || axes.size() != starts.size() ||
        steps.size() != starts.size()) {
        graph.fail(node, "lists of different lengths", "equal ones");
    }
    SliceRange range{std::vector<int64_t>(x.size(), 0), std::vector<int64_t>(x.size(), 1), x};
    for (size_t i = 0; i < starts.size(); ++i) {
        const auto axis = static_cast<size_t>(normal_axis(graph, node, axes[i], x.size()));
        const int64_t size = x[axis];
        const int64_t step = steps[i];
        if (step == 0) graph.fail(node, "step 0", "another");
        const auto place = [&](int64_t at) {
            return at < 0 ? std::max<int64_t>(at, -size - 1) + size : at;
        };
        const int64_t low = step > 0 ? 0 : -1;
        const int64_t high = step > 0 ? size : size - 1;
        const int64_t first = std::clamp(place(starts[i]), int64_t{0}, high);
        const int64_t last = std::clamp(place(ends[i]), low, high);
        const int64_t span = step > 0 ? last - first : first - last;
        const int64_t magnitude = std::abs(step);
        range.start[axis] = first;
        range.step[axis] = step;
        range.count[axis] = span <= 0 ? 0 : (span + magnitude - 1) / magnitude;
    }
    return range;
}

std::vector<int64_t> reduced_axes(const GraphIr& graph, const Node& node) {
    const size_t rank = graph.values[node.input(0)].shape.size();
    std::vector<int64_t> axes;
    if (node.op == "Softmax") {
        axes = {node.integer("axis", -1)};
    } else if (node.op == "LayerNormalization") {
        const int64_t first = normal_axis(graph, node, node.integer("axis", -1), rank);
        for (auto axis = first; axis < static_cast<int64_t>(rank); ++axis) axes.push_back(axis);
    } else if (node.op == "InstanceNormalization" || node.op == "GlobalAveragePool") {
        for (int64_t axis = 2; axis < static_cast<int64_t>(rank); ++axis) axes.push_back(axis);
    } else {
        axes =
            node.input(1) != kAbsent ? graph.constant_integers(node, 1) : node.integers("axes", {});
        if (axes.empty() && node.integer("noop_with_empty_axes", 0) == 0) {
            axes.resize(rank);
            std::iota(axes.begin(), axes.end(), 0);
        }
    }
    for (auto& axis : axes) axis = normal_axis(graph, node, axis, rank);
    std::ranges::sort(axes);
    return axes;
}

PadRule pad_of(const GraphIr& graph, const Node& node) {
    const size_t rank = graph.values[node.input(0)].shape.size();
    const auto pads =
        node.input(1) != kAbsent ? graph.constant_integers(node, 1) : node.integers("pads", {});
    if (pads.size() != 2 * rank) graph.fail(node, "pads of another length", "two per axis");
    PadRule rule;
    rule.begin.assign(pads.begin(), pads.begin() + static_cast<int64_t>(rank));
    rule.end.assign(pads.begin() + static_cast<int64_t>(rank), pads.end());
    rule.mode = node.text("mode", "constant");
    rule.value = static_cast<double>(node.number("value", 0.0F));
    if (node.input(2) != kAbsent) {
        if (!graph.is_constant(node.input(2))) graph.fail(node, "a varying fill", "a constant");
        rule.value = to_host_array(*graph.values[node.input(2)].constant).values.at(0);
    }
    if (rule.mode != "constant" && rule.mode != "edge" && rule.mode != "reflect") {
        graph.fail(node, "mode " + rule.mode, "constant, edge or reflect");
    }
    return rule;
}

ResizeRule resize_of(const GraphIr& graph, const Node& node) {
    const Shape& x = graph.values[node.input(0)].shape;
    ResizeRule rule;
    const std::string mode = node.text("mode", "nearest");
    const std::string transform = node.text("coordinate_transformation_mode", "half_pixel");
    if (mode != "nearest" && mode != "linear")
        graph.fail(node, "mode " + mode, "nearest or linear");
    if (node.integer("antialias", 0) != 0) graph.fail(node, "antialias 1", "0");
    if (node.attributes.contains("axes")) graph.fail(node, "axes", "all axes");
    rule.linear = mode == "linear";
    rule.nearest_mode = node.text("nearest_mode", "round_prefer_floor");
    std::vector<double> scales(x.size(), 1.0);
    const bool by_size = node.input(3) != kAbsent;
    if (by_size) {
        rule.output = graph.constant_integers(node, 3);
        if (rule.output.size() != x.size())
            graph.fail(node, "sizes of another length", "one per axis");
        for (size_t i = 0; i < x.size(); ++i) {
            scales[i] = static_cast<double>(rule.output[i]) / static_cast<double>(x[i]);
        }
    } else {
        if (!graph.is_constant(node.input(2))) graph.fail(node, "varying scales", "constants");
        scales = to_host_array(*graph.values[node.input(2)].constant).values;
        if (scales.size() != x.size()) graph.fail(node, "scales of another length", "one per axis");
        for (size_t i = 0; i < x.size(); ++i) {
            rule.output.push_back(
                static_cast<int64_t>(std::floor(static_cast<double>(x[i]) * scales[i])));
        }
    }
    for (size_t i = 0; i < x.size(); ++i) {
        const auto in = static_cast<double>(x[i]);
        const auto out = static_cast<double>(rule.output[i]);
        double step = 1.0 / scales[i];
        double offset = 0.0;
        if (transform == "half_pixel" || (transform == "pytorch_half_pixel" && out > 1.0)) {
            offset = 0.5 * step - 0.5;
        } else if (transform == "pytorch_half_pixel") {
            step = 0.0;
        } else if (transform == "align_corners") {
            step = out > 1.0 ? (in - 1.0) / (out - 1.0) : 0.0;
        } else if (transform != "asymmetric") {
            graph.fail(node, "coordinate_transformation_mode " + transform,
                       "half_pixel, pytorch_half_pixel, align_corners or asymmetric");
        }
        rule.step.push_back(step);
        rule.offset.push_back(offset);
    }
    return rule;
}

std::vector<int64_t> repeats_of(const GraphIr& graph, const Node& node) {
    if (node.op != "Resize") return {};
    const ResizeRule rule = resize_of(graph, node);
    if (rule.linear) return {};
    const Shape& x = graph.values[node.input(0)].shape;
    const std::string& mode = rule.nearest_mode;
    const bool down = mode == "floor" || mode == "round_prefer_ceil";
    const double shift = (mode == "floor" || mode == "ceil" ? 0.0 : 0.5) + kNearestSlack;
    std::vector<int64_t> factors;
    for (size_t i = 0; i < x.size(); ++i) {
        const int64_t factor = rule.output[i] / x[i];
        if (factor * x[i] != rule.output[i] || factor == 0) return {};
        for (int64_t at = 0; at < rule.output[i]; ++at) {
            const double raw = static_cast<double>(at) * rule.step[i] + rule.offset[i];
            const double picked = down ? std::floor(raw + shift) : std::ceil(raw - shift);
            const auto index = std::clamp<int64_t>(static_cast<int64_t>(picked), 0, x[i] - 1);
            if (index != at / factor) return {};
        }
        factors.push_back(factor);
    }
    return factors;
}

SampleRule sample_of(const GraphIr& graph, const Node& node) {
    const Shape& x = graph.values[node.input(0)].shape;
    const Shape& grid = graph.values[node.input(1)].shape;
    if ((x.size() != 4 && x.size() != 5) || grid.size() != x.size() || grid[0] != x[0] ||
        grid.back() != static_cast<int64_t>(x.size()) - 2) {
        graph.fail(node, "these shapes", "[N,C,(D),H,W] and [N,(D),H,W,2 or 3]");
    }
    SampleRule rule;
    rule.align_corners = node.integer("align_corners", 0) != 0;
    if (node.op == "GridSample3D") {  // TensorRT's plugin node numbers the modes
        const int64_t padding = node.integer("padding_mode", 0);
        if (padding < 0 || padding > 2) graph.fail(node, "another padding_mode", "0, 1 or 2");
        rule.nearest = node.integer("interpolation_mode", 0) == 1;
        rule.padding = padding == 0 ? "zeros" : padding == 1 ? "border" : "reflection";
        return rule;
    }
    const std::string mode = node.text("mode", "linear");
    if (mode != "bilinear" && mode != "linear" && mode != "nearest") {
        graph.fail(node, "mode " + mode, "linear or nearest");
    }
    rule.nearest = mode == "nearest";
    rule.padding = node.text("padding_mode", "zeros");
    if (rule.padding != "zeros" && rule.padding != "border" && rule.padding != "reflection") {
        graph.fail(node, "padding_mode " + rule.padding, "zeros, border or reflection");
    }
    return rule;
}

std::vector<int64_t> split_sizes(const GraphIr& graph, const Node& node) {
    const Shape& x = graph.values[node.input(0)].shape;
    const auto axis =
        static_cast<size_t>(normal_axis(graph, node, node.integer("axis", 0), x.size()));
    if (node.input(1) != kAbsent) return graph.constant_integers(node, 1);
    if (node.attributes.contains("split")) return node.integers("split", {});
    const auto parts = static_cast<int64_t>(node.outputs.size());
    const int64_t each = (x[axis] + parts - 1) / parts;
    std::vector<int64_t> sizes(node.outputs.size(), each);
    sizes.back() = x[axis] - each * (parts - 1);
    return sizes;
}

}  // namespace newscaster::device::cuda
