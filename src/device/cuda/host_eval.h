// Evaluates single nodes on the host in double precision: folds constants at load time, and is the
// reference that the tests of the GPU kernels compare with. Plain loops, not meant to be fast.
#pragma once

#include <span>
#include <vector>

#include "device/cuda/graph_ir.h"

namespace newscaster::device::cuda {

struct HostArray {
    DType dtype = DType::f32;
    Shape shape;
    std::vector<double> values;

    [[nodiscard]] int64_t count() const { return static_cast<int64_t>(values.size()); }
};

[[nodiscard]] HostArray to_host_array(const Tensor& tensor);
[[nodiscard]] Tensor to_tensor(const HostArray& array);  // rounded to the array's element type

// inputs: nullptr where absent. output_shapes: as inferred. Results are not rounded to f32.
[[nodiscard]] std::vector<HostArray> evaluate(const GraphIr& graph, const Node& node,
                                              std::span<const HostArray* const> inputs);

}  // namespace newscaster::device::cuda
