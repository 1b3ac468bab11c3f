// Prepares the graph for lowering: decides which nodes the libraries run, gives them operands in
// the form they want, and merges bias and activation into convolutions.
#pragma once

#include <map>
#include <vector>

#include "device/cuda/graph_ir.h"
#include "device/cuda/plan.h"
#include "device/device.h"

namespace newscaster::device::cuda {

enum class Role {
    fused,  // an expression of generated kernels
    stats,  // generated kernel: InstanceStats
    row,    // generated kernel with one block per row: softmax, normalisations, long reductions
    conv,   // cuDNN
    gemm    // cuBLASLt
};

// The form in which a value has to be stored.
struct Claim {
    bool channels_last = false;
    DType dtype = DType::f32;
    bool operator==(const Claim&) const = default;
};

struct Rewritten {
    GraphIr graph;
    std::vector<Role> roles;        // per node
    std::map<int, Claim> claims;    // per value
    std::map<int, ConvStep> convs;  // per node of role conv
    std::map<int, GemmStep> gemms;  // per node of role gemm
    std::vector<bool> keep_f32;     // per value: coordinates, and what a logarithm sees
    bool half = false;
};

// precision: f32 or f16. With f32 the convolutions are generated kernels too, so that no tensor
// core rounds anything.
// own_convs: large convolutions run on kernels that take bias and activation along at any width.
[[nodiscard]] Rewritten rewrite(const GraphIr& graph, Precision precision, bool own_convs);

}  // namespace newscaster::device::cuda
