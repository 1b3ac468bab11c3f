// Attributes of the structured operators, decoded once: shape inference, the host reference and
// the kernel generator all read these.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "device/cuda/graph_ir.h"

namespace newscaster::device::cuda {

[[nodiscard]] int64_t normal_axis(const GraphIr& graph, const Node& node, int64_t axis,
                                  size_t rank);

// Conv and the pools over d spatial axes (1 to 3).
struct Window {
    std::vector<int64_t> kernel, stride, dilation, pad_begin, pad_end;
    int64_t groups = 1;
    [[nodiscard]] size_t dims() const { return kernel.size(); }
};
[[nodiscard]] Window window_of(const GraphIr& graph, const Node& node);

struct SliceRange {
    std::vector<int64_t> start, step, count;  // one per axis of the input
};
[[nodiscard]] SliceRange slice_of(const GraphIr& graph, const Node& node);

// Axes that a Reduce*, Softmax or *Normalization works over, ascending.
[[nodiscard]] std::vector<int64_t> reduced_axes(const GraphIr& graph, const Node& node);

struct PadRule {
    std::vector<int64_t> begin, end;
    std::string mode;  // constant, edge, reflect
    double value = 0.0;
};
[[nodiscard]] PadRule pad_of(const GraphIr& graph, const Node& node);

// Resize: source = clamp(output * step + offset) per axis.
// Nearest source pixels are ties at rational places that rounding misses; this much is forgiven.
inline constexpr double kNearestSlack = 1e-4;

struct ResizeRule {
    bool linear = false;
    std::string nearest_mode;
    Shape output;
    std::vector<double> step, offset;
};
[[nodiscard]] ResizeRule resize_of(const GraphIr& graph, const Node& node);

// How often a Resize repeats each index of an axis, where that is all it does (nearest, by whole
// numbers: output i is input i / factor); empty otherwise.
[[nodiscard]] std::vector<int64_t> repeats_of(const GraphIr& graph, const Node& node);

struct SampleRule {
    bool nearest = false;
    std::string padding;  // zeros, border, reflection
    bool align_corners = false;
};
[[nodiscard]] SampleRule sample_of(const GraphIr& graph, const Node& node);

// Extents of Split's outputs along its axis.
[[nodiscard]] std::vector<int64_t> split_sizes(const GraphIr& graph, const Node& node);

}  // namespace newscaster::device::cuda
