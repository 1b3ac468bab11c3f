// What the cuda provider would run for a graph, without a GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/tensor.h"
#include "device/device.h"

namespace newscaster::device::cuda {

struct PlannedStep {
    std::string kind;    // "kernel" (generated), "tensor core" (generated, see halo_conv.h),
                         // "cudnn", "cublaslt"
    std::string label;   // operators and the first node's name
    std::string result;  // type and shape of what it writes
    int64_t macs = 0;    // multiply-adds; 0 where they do not matter
};

struct GraphPlan {
    std::vector<PlannedStep> steps;
    size_t scratch_bytes = 0;           // peak
    size_t scratch_bytes_unshared = 0;  // if no two values shared memory
    size_t constant_bytes = 0;          // weights as they are uploaded
    size_t source_bytes = 0;            // of the generated kernels' text
};

// capability: of the GPU, e.g. 90; 9.0 has convolution kernels of its own in f16. Throws
// Error(bad_pack) naming node, operator and shape for what is not supported.
[[nodiscard]] GraphPlan plan_graph(const std::filesystem::path& onnx_file,
                                   const std::map<std::string, Shape>& input_shapes,
                                   Precision precision, int capability);

}  // namespace newscaster::device::cuda
