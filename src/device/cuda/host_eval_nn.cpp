#include "device/cuda/host_eval_nn.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "device/cuda/geometry.h"

namespace newscaster::device::cuda {

namespace {

using Inputs = std::span<const HostArray* const>;

// Conv and pools: visits every input element under the window of one output element.
template <typename Visit>
void for_window(const Window& window, const Shape& x, const std::vector<int64_t>& at,
                const Visit& visit) {
    Odometer tap(window.kernel);
    const int64_t taps = element_count(window.kernel);
    std::vector<int64_t> from = at;
    for (int64_t t = 0; t < taps; ++t, tap.next()) {
        bool inside = true;
        for (size_t i = 0; i < window.dims(); ++i) {
            from[i + 2] = at[i + 2] * window.stride[i] - window.pad_begin[i] +
                          tap.index()[i] * window.dilation[i];
            inside = inside && from[i + 2] >= 0 && from[i + 2] < x[i + 2];
        }
        visit(from, t, inside);
    }
}

void conv(const GraphIr& graph, const Node& node, Inputs in, HostArray& y) {
    const Window window = window_of(graph, node);
    const Shape& w = in[1]->shape;
    const int64_t taps = element_count(window.kernel);
    const int64_t per_group = w[0] / window.groups;
    Odometer at(y.shape);
    for (auto& value : y.values) {
        const int64_t k = at.index()[1];
        double sum = in.size() > 2 && in[2] != nullptr ? in[2]->values[k] : 0.0;
        for_window(window, in[0]->shape, at.index(), [&](auto& from, int64_t t, bool inside) {
            if (!inside) return;
            for (int64_t c = 0; c < w[1]; ++c) {
                from[1] = k / per_group * w[1] + c;
                sum += in[0]->values[linear_offset(in[0]->shape, from)] *
                       in[1]->values[(k * w[1] + c) * taps + t];
            }
        });
        value = sum;
        at.next();
    }
}

void pool(const GraphIr& graph, const Node& node, Inputs in, HostArray& y) {
    const Window window = window_of(graph, node);
    const bool largest = node.op == "MaxPool";
    const bool count_pads = node.integer("count_include_pad", 0) != 0;
    Odometer at(y.shape);
    for (auto& value : y.values) {
        double sum = largest ? -std::numeric_limits<double>::infinity() : 0.0;
        double count = 0.0;
        for_window(window, in[0]->shape, at.index(), [&](auto& from, int64_t, bool inside) {
            if (inside || count_pads) count += 1.0;
            if (!inside) return;
            const double x = in[0]->values[linear_offset(in[0]->shape, from)];
            sum = largest ? std::max(sum, x) : sum + x;
        });
        value = largest ? sum : sum / count;
        at.next();
    }
}

void matmul(const Node& node, Inputs in, HostArray& y) {
    const bool gemm = node.op == "Gemm";
    const bool ta = gemm && node.integer("transA", 0) != 0;
    const bool tb = gemm && node.integer("transB", 0) != 0;
    const double alpha = gemm ? static_cast<double>(node.number("alpha", 1.0F)) : 1.0;
    const double beta = gemm ? static_cast<double>(node.number("beta", 1.0F)) : 1.0;
    const Shape& a = in[0]->shape;
    const int64_t inner = ta ? a[a.size() - 2] : a[a.size() - 1];
    Odometer at(y.shape);
    for (auto& value : y.values) {
        auto ia = at.index();
        auto ib = at.index();
        const size_t r = ia.size();
        const int64_t row = ia[r - 2];
        const int64_t column = ia[r - 1];
        double sum = 0.0;
        for (int64_t k = 0; k < inner; ++k) {
            ia[r - 2] = ta ? k : row;
            ia[r - 1] = ta ? row : k;
            ib[r - 2] = tb ? column : k;
            ib[r - 1] = tb ? k : column;
            sum += in[0]->values[broadcast_offset(in[0]->shape, ia)] *
                   in[1]->values[broadcast_offset(in[1]->shape, ib)];
        }
        value = alpha * sum;
        if (gemm && in.size() > 2 && in[2] != nullptr) {
            value += beta * in[2]->values[broadcast_offset(in[2]->shape, at.index())];
        }
        at.next();
    }
}

// Calls visit(list of offsets) for every group of elements that share the other axes' indices.
template <typename Visit>
void for_groups(const Shape& shape, const std::vector<int64_t>& axes, const Visit& visit) {
    Shape outer;
    Shape inner;
    std::vector<size_t> outer_axes;
    for (size_t i = 0; i < shape.size(); ++i) {
        if (std::ranges::find(axes, static_cast<int64_t>(i)) == axes.end()) {
            outer.push_back(shape[i]);
            outer_axes.push_back(i);
        }
    }
    for (const int64_t axis : axes) inner.push_back(shape[axis]);
    std::vector<int64_t> offsets(static_cast<size_t>(element_count(inner)));
    std::vector<int64_t> index(shape.size());
    Odometer group(outer);
    for (int64_t g = 0; g < element_count(outer); ++g, group.next()) {
        for (size_t i = 0; i < outer_axes.size(); ++i) index[outer_axes[i]] = group.index()[i];
        Odometer member(inner);
        for (auto& offset : offsets) {
            for (size_t i = 0; i < axes.size(); ++i) index[axes[i]] = member.index()[i];
            offset = linear_offset(shape, index);
            member.next();
        }
        visit(g, offsets);
    }
}

void reduce(const GraphIr& graph, const Node& node, Inputs in, HostArray& y) {
    for_groups(in[0]->shape, reduced_axes(graph, node), [&](int64_t g, const auto& offsets) {
        const bool largest = node.op == "ReduceMax";
        const bool smallest = node.op == "ReduceMin";
        double total = largest || smallest ? in[0]->values[offsets[0]] : 0.0;
        for (const int64_t offset : offsets) {
            const double x = in[0]->values[offset];
            if (largest) {
                total = std::max(total, x);
            } else if (smallest) {
                total = std::min(total, x);
            } else {
                total += node.op == "ReduceL2" ? x * x : x;
            }
        }
        if (node.op == "ReduceMean" || node.op == "GlobalAveragePool") {
            total /= static_cast<double>(offsets.size());
        }
        y.values[g] = node.op == "ReduceL2" ? std::sqrt(total) : total;
    });
}

void softmax(const GraphIr& graph, const Node& node, Inputs in, HostArray& y) {
    for_groups(in[0]->shape, reduced_axes(graph, node), [&](int64_t, const auto& offsets) {
        double top = -std::numeric_limits<double>::infinity();
        for (const int64_t o : offsets) top = std::max(top, in[0]->values[o]);
        double total = 0.0;
        for (const int64_t o : offsets) total += y.values[o] = std::exp(in[0]->values[o] - top);
        for (const int64_t o : offsets) y.values[o] /= total;
    });
}

void normalise(const GraphIr& graph, const Node& node, Inputs in, HostArray& y) {
    const bool layer = node.op == "LayerNormalization";
    const double epsilon = static_cast<double>(node.number("epsilon", 1e-5F));
    for_groups(in[0]->shape, reduced_axes(graph, node), [&](int64_t g, const auto& offsets) {
        const auto count = static_cast<double>(offsets.size());
        double mean = 0.0;
        for (const int64_t o : offsets) mean += in[0]->values[o] / count;
        double variance = 0.0;
        for (const int64_t o : offsets) {
            variance += (in[0]->values[o] - mean) * (in[0]->values[o] - mean) / count;
        }
        for (size_t i = 0; i < offsets.size(); ++i) {
            const size_t p = layer ? i : static_cast<size_t>(g) % in[1]->values.size();
            const bool biased = in.size() > 2 && in[2] != nullptr;
            y.values[offsets[i]] = (in[0]->values[offsets[i]] - mean) /
                                       std::sqrt(variance + epsilon) * in[1]->values[p] +
                                   (biased ? in[2]->values[p] : 0.0);
        }
    });
}

void batch_norm(const Node& node, Inputs in, HostArray& y) {
    const double epsilon = static_cast<double>(node.number("epsilon", 1e-5F));
    Odometer at(y.shape);
    for (size_t i = 0; i < y.values.size(); ++i, at.next()) {
        const auto c = static_cast<size_t>(at.index().size() > 1 ? at.index()[1] : 0);
        y.values[i] = (in[0]->values[i] - in[3]->values[c]) /
                          std::sqrt(in[4]->values[c] + epsilon) * in[1]->values[c] +
                      in[2]->values[c];
    }
}

double nearest_of(const std::string& mode, double at) {
    if (mode == "floor") return std::floor(at + kNearestSlack);
    if (mode == "ceil") return std::ceil(at - kNearestSlack);
    if (mode == "round_prefer_ceil") return std::floor(at + 0.5 + kNearestSlack);
    return std::ceil(at - 0.5 - kNearestSlack);
}

void resize(const GraphIr& graph, const Node& node, Inputs in, HostArray& y) {
    const ResizeRule rule = resize_of(graph, node);
    const Shape& x = in[0]->shape;
    const size_t rank = x.size();
    Odometer at(y.shape);
    for (auto& value : y.values) {
        std::vector<int64_t> low(rank);
        std::vector<double> fraction(rank, 0.0);
        for (size_t i = 0; i < rank; ++i) {
            const auto last = static_cast<double>(x[i] - 1);
            const double raw = static_cast<double>(at.index()[i]) * rule.step[i] + rule.offset[i];
            const double place = rule.linear
                                     ? std::clamp(raw, 0.0, last)
                                     : std::clamp(nearest_of(rule.nearest_mode, raw), 0.0, last);
            low[i] = static_cast<int64_t>(std::floor(place));
            fraction[i] = place - std::floor(place);
        }
        value = 0.0;
        for (size_t corner = 0; corner < size_t{1} << rank; ++corner) {
            double weight = 1.0;
            std::vector<int64_t> from = low;
            for (size_t i = 0; i < rank; ++i) {
                const bool high = (corner >> i & 1U) != 0;
                weight *= high ? fraction[i] : 1.0 - fraction[i];
                if (high) from[i] = std::min(low[i] + 1, x[i] - 1);
            }
            if (weight != 0.0) value += weight * in[0]->values[linear_offset(x, from)];
        }
        at.next();
    }
}

double reflect(double x, double low, double high) {
    const double span = high - low;
    if (span <= 0.0) return low;
    const double folded = std::fmod(std::abs(x - low), 2.0 * span);
    return low + (folded > span ? 2.0 * span - folded : folded);
}

void grid_sample(const GraphIr& graph, const Node& node, Inputs in, HostArray& y) {
    const SampleRule rule = sample_of(graph, node);
    const Shape& x = in[0]->shape;
    const size_t dims = x.size() - 2;
    Odometer at(y.shape);
    for (auto& value : y.values) {
        auto grid_at = at.index();
        grid_at.erase(grid_at.begin() + 1);
        grid_at.push_back(0);
        std::vector<double> place(dims);
        for (size_t i = 0; i < dims; ++i) {
            grid_at.back() = static_cast<int64_t>(dims - 1 - i);  // the grid holds x, y, (z)
            const auto size = static_cast<double>(x[i + 2]);
            const double g = in[1]->values[linear_offset(in[1]->shape, grid_at)];
            double p = rule.align_corners ? (g + 1.0) / 2.0 * (size - 1.0)
                                          : ((g + 1.0) * size - 1.0) / 2.0;
            if (rule.padding == "border") p = std::clamp(p, 0.0, size - 1.0);
            if (rule.padding == "reflection") {
                p = rule.align_corners ? reflect(p, 0.0, size - 1.0) : reflect(p, -0.5, size - 0.5);
                p = std::clamp(p, 0.0, size - 1.0);
            }
            place[i] = rule.nearest ? std::nearbyint(p) : p;
        }
        value = 0.0;
        for (size_t corner = 0; corner < size_t{1} << dims; ++corner) {
            double weight = 1.0;
            auto from = at.index();
            bool inside = true;
            for (size_t i = 0; i < dims; ++i) {
                const double floor = std::floor(place[i]);
                const bool high = (corner >> i & 1U) != 0;
                weight *= high ? place[i] - floor : 1.0 - (place[i] - floor);
                from[i + 2] = static_cast<int64_t>(floor) + (high ? 1 : 0);
                inside = inside && from[i + 2] >= 0 && from[i + 2] < x[i + 2];
            }
            if (inside && weight != 0.0) value += weight * in[0]->values[linear_offset(x, from)];
        }
        at.next();
    }
}

}  // namespace

int64_t linear_offset(const Shape& shape, const std::vector<int64_t>& index) {
    int64_t offset = 0;
    for (size_t i = 0; i < shape.size(); ++i) offset = offset * shape[i] + index[i];
    return offset;
}

int64_t broadcast_offset(const Shape& shape, const std::vector<int64_t>& index) {
    int64_t offset = 0;
    const size_t skipped = index.size() - shape.size();
    for (size_t i = 0; i < shape.size(); ++i) {
        offset = offset * shape[i] + (shape[i] == 1 ? 0 : index[i + skipped]);
    }
    return offset;
}

bool evaluate_nn(const GraphIr& graph, const Node& node, Inputs in, HostArray& y) {
    const std::string& op = node.op;
    if (op == "Conv") {
        conv(graph, node, in, y);
    } else if (op == "AveragePool" || op == "MaxPool") {
        pool(graph, node, in, y);
    } else if (op == "MatMul" || op == "Gemm") {
        matmul(node, in, y);
    } else if (op.starts_with("Reduce") || op == "GlobalAveragePool") {
        reduce(graph, node, in, y);
    } else if (op == "Softmax") {
        softmax(graph, node, in, y);
    } else if (op == "LayerNormalization" || op == "InstanceNormalization") {
        normalise(graph, node, in, y);
    } else if (op == "BatchNormalization") {
        batch_norm(node, in, y);
    } else if (op == "Resize") {
        resize(graph, node, in, y);
    } else if (op.starts_with("GridSample")) {
        grid_sample(graph, node, in, y);
    } else {
        return false;
    }
    return true;
}

}  // namespace newscaster::device::cuda
