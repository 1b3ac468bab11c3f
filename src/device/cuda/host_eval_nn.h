// The host evaluator's network operators, and the index helpers it shares with them.
#pragma once

#include <span>
#include <vector>

#include "device/cuda/graph_ir.h"
#include "device/cuda/host_eval.h"

namespace newscaster::device::cuda {

// Counts through all indices of a shape in row-major order.
class Odometer {
  public:
    explicit Odometer(const Shape& shape) : shape_(shape), index_(shape.size(), 0) {}
    [[nodiscard]] const std::vector<int64_t>& index() const { return index_; }
    void next() {
        for (size_t i = shape_.size(); i > 0; --i) {
            if (++index_[i - 1] < shape_[i - 1]) return;
            index_[i - 1] = 0;
        }
    }

  private:
    Shape shape_;
    std::vector<int64_t> index_;
};

[[nodiscard]] int64_t linear_offset(const Shape& shape, const std::vector<int64_t>& index);
// The element of a smaller, broadcast tensor that belongs to an index of the larger one.
[[nodiscard]] int64_t broadcast_offset(const Shape& shape, const std::vector<int64_t>& index);

// Convolution, products, pools, reductions, normalisations, resize, grid sample. false: none of
// them. y: shape set, values to be filled.
[[nodiscard]] bool evaluate_nn(const GraphIr& graph, const Node& node,
                               std::span<const HostArray* const> inputs, HostArray& y);

}  // namespace newscaster::device::cuda
