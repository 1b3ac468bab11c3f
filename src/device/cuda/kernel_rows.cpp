// Kernels for rows that one block each would serve badly: channels of a channels-last tensor, and
// very short rows.
#include <fmt/format.h>

#include <algorithm>

#include "device/cuda/emitter.h"
#include "device/cuda/fusion.h"

namespace newscaster::device::cuda {

namespace {

constexpr int64_t kGroup = 16;  // channels of a block: a whole 32-byte sector per position

}  // namespace

// [N, 2, C]: factor and shift that normalise, scale and bias a channel. x: f16, channels last,
// stored C a multiple of 8; scale and bias: f32 constants. A block has 16 channels of one picture;
// even threads take the first 8 of them. Sums are taken about the first value, so that a large mean
// costs no digits.
Step instance_stats_step(const Plan& plan, int index, const std::string& name) {
    const Node& node = plan.graph.nodes[index];
    const int from = node.input(0);
    const int target = node.outputs[0];
    const Shape& x = plan.graph.values[from].shape;
    const int64_t stored = plan.storage[from].extents.back();
    const int64_t positions = element_count(x) / (x[0] * x[1]);
    const int64_t groups = (stored + kGroup - 1) / kGroup;
    KernelStep step;
    step.name = name;
    step.threads = positions >= 4096 ? 1024 : 256;
    step.blocks = static_cast<unsigned>(x[0] * groups);
    step.source = fmt::format(
        R"(extern "C" __global__ void __launch_bounds__({threads}) {name}(const unsigned short* __restrict__ x, const float* __restrict__ scale, const float* __restrict__ bias, float* __restrict__ out) {{
  __shared__ float sums[{warps}][2][16];
  const int picture = blockIdx.x / {groups};
  const int half = threadIdx.x & 1;
  const int first = (blockIdx.x % {groups}) * 16 + half * 8;
  float shift[8] = {{}}, sum[8] = {{}}, square[8] = {{}};
  if (first < {stored}) {{
    const uint4* row = reinterpret_cast<const uint4*>(x + (long long)picture * {plane} + first);
    const uint4 origin = row[0];
    const unsigned short* h = reinterpret_cast<const unsigned short*>(&origin);
#pragma unroll
    for (int j = 0; j < 8; ++j) shift[j] = nc_h2f(h[j]);
#pragma unroll 4
    for (int i = threadIdx.x >> 1; i < {positions}; i += {pairs}) {{
      const uint4 v = row[(long long)i * {step}];
      const unsigned short* e = reinterpret_cast<const unsigned short*>(&v);
#pragma unroll
      for (int j = 0; j < 8; ++j) {{
        const float d = nc_h2f(e[j]) - shift[j];
        sum[j] += d;
        square[j] += d * d;
      }}
    }}
  }}
#pragma unroll
  for (int j = 0; j < 8; ++j) {{
    for (int o = 16; o > 1; o >>= 1) {{
      sum[j] += __shfl_xor_sync(0xffffffffu, sum[j], o);
      square[j] += __shfl_xor_sync(0xffffffffu, square[j], o);
    }}
    if ((threadIdx.x & 31) < 2) {{
      sums[threadIdx.x >> 5][half][j] = sum[j];
      sums[threadIdx.x >> 5][half][8 + j] = square[j];
    }}
  }}
  __syncthreads();
  const int channel = blockIdx.x % {groups} * 16 + threadIdx.x;
  if (threadIdx.x >= 16 || channel >= {channels}) return;
  float s = 0.0f, q = 0.0f;
#pragma unroll 4
  for (int w = 0; w < {warps}; ++w) {{
    s += sums[w][threadIdx.x >> 3][threadIdx.x & 7];
    q += sums[w][threadIdx.x >> 3][8 + (threadIdx.x & 7)];
  }}
  const float mean = s * {inverse};
  const float factor = scale[channel] * rsqrtf(fmaxf(q * {inverse} - mean * mean, 0.0f) + {epsilon});
  float* target = out + (long long)picture * 2 * {channels} + channel;
  target[0] = factor;
  target[{channels}] = bias[channel] - (nc_h2f(x[(long long)picture * {plane} + channel]) + mean) * factor;
}}
)",
        fmt::arg("threads", step.threads), fmt::arg("name", name),
        fmt::arg("warps", step.threads / 32), fmt::arg("groups", groups),
        fmt::arg("stored", stored), fmt::arg("plane", positions * stored),
        fmt::arg("positions", positions), fmt::arg("pairs", step.threads / 2),
        fmt::arg("step", stored / 8), fmt::arg("channels", x[1]),
        fmt::arg("inverse", float_literal(1.0 / static_cast<double>(positions))),
        fmt::arg("epsilon", float_literal(static_cast<double>(node.number("epsilon", 1e-5F)))));
    return {step, fmt::format("InstanceStats '{}'", node.name), node.inputs, target};
}

// Softmax over few elements: a thread has a whole row.
Step short_softmax_step(const Plan& plan, int index, const std::string& name) {
    const Node& node = plan.graph.nodes[index];
    const int target = node.outputs[0];
    const Shape& x = plan.graph.values[node.input(0)].shape;
    const auto axis = static_cast<size_t>(reduced_axes(plan.graph, node).front());
    Shape outer = x;
    outer[axis] = 1;
    const int64_t rows = element_count(outer);
    Emitter emitter(plan);
    emitter.note_node(index);
    Indices at = emitter.unravel("t", outer);
    at[axis] = std::string("e");
    std::string body = emitter.take_body();
    const std::string loop = fmt::format("for (int e = 0; e < {}; ++e)", x[axis]);
    body += fmt::format("float held[{}];\nfloat top = __int_as_float(0xff800000);\n", x[axis]);
    emitter.append("#pragma unroll\n");
    emitter.open(loop);
    const std::string read = emitter.value(node.input(0), at);
    emitter.append(fmt::format("held[e] = {};\ntop = fmaxf(top, held[e]);\n", read));
    emitter.close();
    emitter.append(
        fmt::format("float total = 0.0f;\n#pragma unroll\n{} {{ held[e] = expf(held[e] - top); "
                    "total += held[e]; "
                    "}}\nconst float scale = 1.0f / total;\n#pragma unroll\n",
                    loop));
    emitter.open(loop);
    const DType dtype = plan.storage[target].dtype;
    emitter.append(fmt::format("out[{}] = {};\n", emitter.offset(target, at),
                               stored_as(dtype, "held[e] * scale")));
    emitter.close();
    body += emitter.take_body();
    return flat_step(plan, emitter, target, name, rows, body);
}

}  // namespace newscaster::device::cuda
