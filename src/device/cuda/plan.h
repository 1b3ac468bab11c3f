// The program that a session runs: where every value lives, and the steps in order.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "device/cuda/geometry.h"
#include "device/cuda/graph_ir.h"

namespace newscaster::device::cuda {

enum class Place {
    inlined,   // recomputed by every kernel that reads it
    arena,     // scratch memory of the session
    constant,  // weights, uploaded once per graph
    input,     // bound buffers
    output
};

// Physical form of one value.
struct Storage {
    Place place = Place::inlined;
    DType dtype = DType::f32;
    std::vector<int> order;        // logical axis of each physical axis, slowest first
    Shape extents;                 // in physical order; channels may be padded with zeros
    std::vector<int64_t> strides;  // in elements, per logical axis
    bool channels_last = false;

    [[nodiscard]] int64_t elements() const { return element_count(extents); }
    [[nodiscard]] size_t bytes() const { return static_cast<size_t>(elements()) * size_of(dtype); }
};
// What the libraries' f16 kernels, and ours, want channels to be a multiple of.
inline constexpr int64_t kChannelPad = 8;
[[nodiscard]] constexpr int64_t padded_channels(int64_t channels) {
    return (channels + kChannelPad - 1) / kChannelPad * kChannelPad;
}
[[nodiscard]] Storage row_major(Place place, DType dtype, const Shape& shape);
// [N, spatial..., C], C padded to a multiple of kChannelPad. Rank 3 to 5.
[[nodiscard]] Storage channels_last(Place place, DType dtype, const Shape& shape);

enum class Activation { none, leaky_relu };

// y = activation(conv(x, w) + bias), f16, channels last, through cuDNN.
struct ConvStep {
    Window window;
    Activation activation = Activation::none;
    float slope = 0.0F;  // of leaky_relu below zero
    bool has_bias = false;
    int64_t upsample = 1;  // x is read as if each position stood this often in y and x
};

// What a kernel's input looks like to the copy engine, which brings boxes of it to shared memory.
struct BoxLoad {
    std::array<int64_t, 5> extents{};  // channels, x, y, z, pictures
    std::array<int64_t, 3> box{};      // channels, x, y
    int64_t step = 1;                  // in x and y
    int64_t swizzle_bytes = 0;
    int64_t mma_width = 0;  // of the products that the kernel is made of
};

// A generated kernel. Parameters: the addresses of `reads` in order, then of the written value;
// with a box, the first is a map of it instead.
struct KernelStep {
    std::string source;  // one extern "C" __global__ function called `name`; empty: another step's
    std::string name;
    unsigned blocks = 0;
    unsigned threads = 0;
    bool pointwise = false;  // every element of the written value by itself
    // Convolutions of our own (halo_conv.h): at most one block per multiprocessor runs.
    std::optional<BoxLoad> box;
    size_t shared_bytes = 0;
    int64_t macs = 0;
    int node = kAbsent;
    std::shared_ptr<const ConvStep> conv;
};

// y[batch] = op(a)[batch] * op(b)[batch], row-major, through cuBLASLt.
struct GemmStep {
    int64_t m = 0, n = 0, k = 0, batch = 1;
    bool transpose_a = false, transpose_b = false;
    int64_t stride_a = 0, stride_b = 0;  // in elements; 0: shared by the batch
    float alpha = 1.0F;
};

struct Step {
    std::variant<KernelStep, ConvStep, GemmStep> work;
    std::string label;       // operators and node names, for people
    std::vector<int> reads;  // conv: x, w, [bias]; gemm: a, b
    int writes = kAbsent;
};

struct Plan {
    GraphIr graph;                 // after rewriting
    std::vector<Storage> storage;  // per value of the graph
    std::vector<Step> steps;
    std::vector<size_t> arena_offset;  // per value; meaningful for Place::arena
    size_t arena_bytes = 0;            // peak
    size_t arena_bytes_unshared = 0;   // if no two values shared memory
};

// One line per step: what was fused, shapes and layouts, memory.
[[nodiscard]] std::string describe(const Plan& plan);

}  // namespace newscaster::device::cuda
