// Whole kernels around the expressions of the emitter.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "device/cuda/emitter.h"
#include "device/cuda/fusion.h"

namespace newscaster::device::cuda {

namespace {

constexpr unsigned kThreads = 256;
constexpr int64_t kManyElements = 1 << 16;  // below, one element per thread keeps the GPU busier
constexpr int64_t kCachedPerThread = 32;    // row elements a thread keeps in registers

// Elements that one thread computes side by side, so that it stores 16 bytes at once.
int64_t vector_width(const Storage& storage) {
    if (storage.elements() < kManyElements || storage.extents.empty()) return 1;
    const auto width = static_cast<int64_t>(16 / size_of(storage.dtype));
    return storage.extents.back() % width == 0 && width <= 8 ? width : 1;
}

}  // namespace

std::string kernel_parameters(const Plan& plan, const Emitter& emitter, int target) {
    std::string text;
    for (const int value : emitter.reads()) {
        text += fmt::format("const {}* __restrict__ v{}, ", storage_type(plan.storage[value].dtype),
                            value);
    }
    return text + fmt::format("{}* __restrict__ out", storage_type(plan.storage[target].dtype));
}

std::string stored_as(DType dtype, const std::string& expression) {
    if (dtype == DType::f16) return fmt::format("nc_f2h({})", expression);
    return fmt::format("({})({})", storage_type(dtype), expression);
}

std::string kernel_label(const Plan& plan, const Emitter& emitter) {
    std::string text;
    for (const int node : emitter.nodes()) {
        text += (text.empty() ? "" : "+") + plan.graph.nodes[node].op;
    }
    return text + fmt::format(" '{}'", plan.graph.nodes[emitter.nodes().front()].name);
}

const char* kernel_prelude() {
    return R"(
__device__ __forceinline__ float nc_h2f(unsigned short h) {
  float f; asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h)); return f;
}
__device__ __forceinline__ unsigned short nc_f2h(float f) {
  unsigned short h; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f)); return h;
}
__device__ __forceinline__ int nc_clamp(int i, int last) { return min(max(i, 0), last); }
__device__ __forceinline__ int nc_wrap(int i, int size) {
  return nc_clamp(i < 0 ? i + size : i, size - 1);
}
__device__ __forceinline__ float nc_leaky(float x, float slope) { return x < 0.0f ? x * slope : x; }
__device__ __forceinline__ float nc_elu(float x, float a) { return x < 0.0f ? a * expm1f(x) : x; }
__device__ __forceinline__ float nc_softplus(float x) {
  return fmaxf(x, 0.0f) + log1pf(expf(-fabsf(x)));
}
__device__ __forceinline__ float nc_gelu(float x) {
  return 0.5f * x * (1.0f + erff(x * 0.70710678118654752f));
}
__device__ __forceinline__ float nc_gelu_tanh(float x) {
  return 0.5f * x * (1.0f + tanhf(0.79788456080286536f * (x + 0.044715f * x * x * x)));
}
__device__ __forceinline__ float nc_mish(float x) { return x * tanhf(nc_softplus(x)); }
__device__ __forceinline__ float nc_pow(float a, float b) {
  return b == 2.0f ? a * a : b == 0.5f ? sqrtf(a) : powf(a, b);
}
__device__ __forceinline__ float nc_min(float a, float b) { return fminf(a, b); }
__device__ __forceinline__ float nc_max(float a, float b) { return fmaxf(a, b); }
__device__ __forceinline__ long long nc_min(long long a, long long b) { return a < b ? a : b; }
__device__ __forceinline__ long long nc_max(long long a, long long b) { return a > b ? a : b; }
__device__ __forceinline__ float nc_mod(float a, float b) { return fmodf(fmodf(a, b) + b, b); }
__device__ __forceinline__ long long nc_mod(long long a, long long b) { return (a % b + b) % b; }
__device__ __forceinline__ float nc_reflect(float x, float low, float span) {
  if (span <= 0.0f) return low;
  const float folded = fmodf(fabsf(x - low), 2.0f * span);
  return low + (folded > span ? 2.0f * span - folded : folded);
}
template <typename T, int N> struct __align__(sizeof(T) * N < 16 ? sizeof(T) * N : 16) nc_pack {
  T e[N];
};
// Neighbours in memory as wide words: as structs the compiler would take them one by one.
__device__ __forceinline__ void nc_get_words(const void* p, unsigned (&w)[1]) {
  w[0] = *static_cast<const unsigned*>(p);
}
__device__ __forceinline__ void nc_get_words(const void* p, unsigned (&w)[2]) {
  const uint2 v = *static_cast<const uint2*>(p);
  w[0] = v.x, w[1] = v.y;
}
__device__ __forceinline__ void nc_get_words(const void* p, unsigned (&w)[4]) {
  const uint4 v = *static_cast<const uint4*>(p);
  w[0] = v.x, w[1] = v.y, w[2] = v.z, w[3] = v.w;
}
template <int N> __device__ __forceinline__ nc_pack<unsigned short, N> nc_get(const unsigned short* p) {
  unsigned words[N / 2];
  nc_get_words(p, words);
  nc_pack<unsigned short, N> pack;
#pragma unroll
  for (int i = 0; i < N; ++i) pack.e[i] = (unsigned short)(words[i / 2] >> (i % 2 * 16));
  return pack;
}
template <int N> __device__ __forceinline__ nc_pack<float, N> nc_get(const float* p) {
  constexpr int kStep = N < 4 ? N : 4;
  nc_pack<float, N> pack;
#pragma unroll
  for (int i = 0; i < N; i += kStep) {
    unsigned words[kStep];
    nc_get_words(p + i, words);
#pragma unroll
    for (int j = 0; j < kStep; ++j) pack.e[i + j] = __uint_as_float(words[j]);
  }
  return pack;
}
__device__ __forceinline__ void nc_put_words(void* p, const unsigned (&w)[1]) {
  *static_cast<unsigned*>(p) = w[0];
}
__device__ __forceinline__ void nc_put_words(void* p, const unsigned (&w)[2]) {
  asm volatile("st.global.v2.b32 [%0], {%1, %2};" ::"l"(p), "r"(w[0]), "r"(w[1]) : "memory");
}
__device__ __forceinline__ void nc_put_words(void* p, const unsigned (&w)[4]) {
  asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(p), "r"(w[0]), "r"(w[1]),
               "r"(w[2]), "r"(w[3])
               : "memory");
}
template <int N>
__device__ __forceinline__ void nc_put(unsigned short* p, const nc_pack<unsigned short, N>& pack) {
  unsigned words[N / 2];
#pragma unroll
  for (int i = 0; i < N / 2; ++i) words[i] = pack.e[2 * i] | (unsigned)pack.e[2 * i + 1] << 16;
  nc_put_words(p, words);
}
template <int N> __device__ __forceinline__ void nc_put(float* p, const nc_pack<float, N>& pack) {
  constexpr int kStep = N < 4 ? N : 4;
#pragma unroll
  for (int i = 0; i < N; i += kStep) {
    unsigned words[kStep];
#pragma unroll
    for (int j = 0; j < kStep; ++j) words[j] = __float_as_uint(pack.e[i + j]);
    nc_put_words(p + i, words);
  }
}
template <bool kMax> __device__ __forceinline__ float nc_join(float a, float b) {
  return kMax ? fmaxf(a, b) : a + b;
}
template <bool kMax> __device__ float nc_block(float v, float* shared) {
  for (int o = 16; o > 0; o >>= 1) v = nc_join<kMax>(v, __shfl_xor_sync(0xffffffffu, v, o));
  __syncthreads();
  if ((threadIdx.x & 31) == 0) shared[threadIdx.x >> 5] = v;
  __syncthreads();
  v = shared[0];
  for (int i = 1; i < (int)(blockDim.x >> 5); ++i) v = nc_join<kMax>(v, shared[i]);
  return v;
}
)";
}

Step flat_step(const Plan& plan, const Emitter& emitter, int target, const std::string& name,
               int64_t count, const std::string& body) {
    KernelStep step;
    step.name = name;
    step.threads = kThreads;
    step.blocks = static_cast<unsigned>((count + kThreads - 1) / kThreads);
    step.source = fmt::format(
        "extern \"C\" __global__ void __launch_bounds__({}) {}({}) {{\n"
        "const int t = blockIdx.x * {} + threadIdx.x;\nif (t >= {}) return;\n{}}}\n",
        kThreads, name, kernel_parameters(plan, emitter, target), kThreads, count, body);
    return {step, kernel_label(plan, emitter), emitter.reads(), target};
}

namespace {

constexpr size_t kMostVariants = 6;

// Writes the body of a kernel whose threads have `width` neighbouring elements each.
class LanesBody {
  public:
    LanesBody(const Plan& plan, Emitter& emitter, int value, int64_t width)
        : storage_(plan.storage[value]),
          channels_(plan.graph.values[value].shape[static_cast<size_t>(storage_.order.back())]),
          emitter_(emitter),
          value_(value),
          width_(width) {}

    // physical: indices of every axis of the storage but the last, whose index / width is `group`.
    std::string write(Indices physical, const std::string& group) {
        physical_ = std::move(physical);
        base_ = emitter_.name_int(fmt::format("{} * {}", group, width_));
        std::string body = emitter_.take_body();
        body += fmt::format("__align__(16) {} o[{}];\n", storage_type(storage_.dtype), width_);
        const int64_t stored = storage_.extents.back();
        // A variant for each range of bases that reads one thing only, so that lanes share loads;
        // the last one asks which lanes are padding.
        std::set<int64_t> edges = ranges();
        if (stored != channels_) edges.insert(channels_ / width_ * width_);
        edges.erase(0);
        edges.insert(stored);
        int64_t first = 0;
        for (const int64_t last : edges) {
            body += last == stored ? "{\n" : fmt::format("if ({} < {}) {{\n", base_, last);
            body += variant(first, last) + (last == stored ? "}\n" : "} else ");
            first = last;
        }
        return body + fmt::format(
                          "*reinterpret_cast<uint4*>(out + (long long)t * {}) = "
                          "*reinterpret_cast<const uint4*>(o);\n",
                          width_);
    }

  private:
    std::set<int64_t> ranges() {
        lanes(base_, width_, "u", false);
        std::set<int64_t> edges = emitter_.splits();
        emitter_.end_lanes();
        if (edges.size() > kMostVariants) edges.clear();
        return edges;
    }

    std::string variant(int64_t first, int64_t last) {
        const bool padded = last > channels_;
        emitter_.assume(first, last);
        std::string text = lanes(base_, width_, "u", padded);
        const int64_t finest = emitter_.finest();
        emitter_.end_lanes();
        if (finest == width_) return text;
        // Groups of lanes that agree on more than all of them do.
        text = lanes("inner", finest, fmt::format("v * {} + u", finest), padded);
        emitter_.end_lanes();
        return fmt::format(
            "#pragma unroll\nfor (int v = 0; v < {}; ++v) {{\nconst int inner = {} + v * "
            "{};\n{}}}\n",
            width_ / finest, base_, finest, text);
    }

    // The loop over lanes and what goes before it.
    std::string lanes(const std::string& base, int64_t width, const std::string& place,
                      bool padded) {
        const std::string index = emitter_.begin_lanes(base, "u", width);
        const std::string define = emitter_.take_body();
        Indices at(physical_.size() + 1, "0");
        for (size_t i = 0; i < physical_.size(); ++i) {
            at[static_cast<size_t>(storage_.order[i])] = physical_[i];
        }
        at[static_cast<size_t>(storage_.order.back())] = index;
        if (padded) emitter_.open(fmt::format("if ({} < {})", index, channels_));
        const std::string result = emitter_.root(value_, at);
        emitter_.append(fmt::format("o[{}] = {};\n", place, stored_as(storage_.dtype, result)));
        if (padded) emitter_.close();
        const std::string element = emitter_.take_body();
        return fmt::format("{}#pragma unroll\nfor (int u = 0; u < {}; ++u) {{\n{}{}{}}}\n",
                           emitter_.take_ahead(), width, define,
                           padded ? fmt::format("o[{}] = 0;\n", place) : "", element);
    }

    const Storage& storage_;
    int64_t channels_;
    Emitter& emitter_;
    int value_;
    int64_t width_;
    Indices physical_;
    std::string base_;
};

}  // namespace

Step pointwise_step(const Plan& plan, int value, const std::string& name) {
    const Storage& storage = plan.storage[value];
    const Shape& shape = plan.graph.values[value].shape;
    const int64_t width = vector_width(storage);
    Emitter emitter(plan);
    Shape extents = storage.extents;
    if (width > 1) extents.back() /= width;
    Indices physical = emitter.unravel("t", extents);
    std::string body = emitter.take_body();
    if (width > 1) {
        const std::string group = physical.back();
        physical.pop_back();
        body += LanesBody(plan, emitter, value, width).write(std::move(physical), group);
    } else {
        Indices at(shape.size(), "0");
        std::string guard;  // padding holds zeros
        for (size_t i = 0; i < physical.size(); ++i) {
            at[static_cast<size_t>(storage.order[i])] = physical[i];
            if (storage.extents[i] != shape[static_cast<size_t>(storage.order[i])]) {
                guard = fmt::format("{} < {}", physical[i],
                                    shape[static_cast<size_t>(storage.order[i])]);
            }
        }
        if (!guard.empty()) {
            body += "out[t] = 0;\n";
            emitter.open(fmt::format("if ({})", guard));
        }
        const std::string result = emitter.root(value, at);
        emitter.append(fmt::format("out[t] = {};\n", stored_as(storage.dtype, result)));
        if (!guard.empty()) emitter.close();
        body += emitter.take_body();
    }
    Step step = flat_step(plan, emitter, value, name, element_count(extents), body);
    std::get<KernelStep>(step.work).pointwise = true;
    return step;
}

namespace {

// The parts of a row kernel that depend on the operator, in terms of X(e): element e of the row.
struct RowBody {
    std::string statistics;
    std::string result;  // expression of x and e; empty: `total` is the row's only result
};

// A loop over this thread's elements e of the row. Unrolled when they are held in registers, which
// cannot be indexed otherwise.
std::string row_loop(int64_t length, unsigned threads) {
    const int64_t turns = (length + threads - 1) / threads;
    return fmt::format(
        "{}for (int s = 0; s < {}; ++s) if (const int e = s * {} + threadIdx.x; e < {})",
        turns <= kCachedPerThread ? "#pragma unroll\n" : "", turns, threads, length);
}

std::string over_row(int64_t length, unsigned threads, const std::string& statement) {
    return fmt::format("{} {{ {} }}\n", row_loop(length, threads), statement);
}

RowBody row_body(const Node& node, int64_t length, unsigned threads) {
    const auto sum = [&](const std::string& start, const std::string& statement, bool largest) {
        return fmt::format(
            "{{ float a = {};\n{} {} }}\n", start, over_row(length, threads, statement),
            fmt::format("total = nc_block<{}>(a, shared);", largest ? "true" : "false"));
    };
    const std::string lowest = "__int_as_float(0xff800000)";
    const std::string inverse = float_literal(1.0 / static_cast<double>(length));
    const std::string& op = node.op;
    if (op == "ReduceMax") return {sum(lowest, "a = fmaxf(a, X(e));", true), ""};
    if (op == "ReduceMin")
        return {sum(lowest, "a = fmaxf(a, -X(e));", true) + "total = -total;\n", ""};
    if (op == "ReduceSum") return {sum("0.0f", "a += X(e);", false), ""};
    if (op == "ReduceL2") {
        return {sum("0.0f", "const float x = X(e); a += x * x;", false) + "total = sqrtf(total);\n",
                ""};
    }
    if (op == "ReduceMean" || op == "GlobalAveragePool") {
        return {sum("0.0f", "a += X(e);", false) + fmt::format("total *= {};\n", inverse), ""};
    }
    if (op == "Softmax") {
        return {sum(lowest, "a = fmaxf(a, X(e));", true) + "const float top = total;\n" +
                    sum("0.0f", "a += expf(X(e) - top);", false) +
                    "const float scale = 1.0f / total;\n",
                "expf(x - top) * scale"};
    }
    return {sum("0.0f", "a += X(e);", false) +
                fmt::format("const float mean = total * {};\n", inverse) +
                sum("0.0f", "const float d = X(e) - mean; a += d * d;", false) +
                fmt::format("const float scale = rsqrtf(total * {} + {});\n", inverse,
                            float_literal(static_cast<double>(node.number("epsilon", 1e-5F)))),
            "(x - mean) * scale"};
}

}  // namespace

Step row_step(const Plan& plan, int index, const std::string& name) {
    const Node& node = plan.graph.nodes[index];
    const int target = node.outputs[0];
    const Shape& x = plan.graph.values[node.input(0)].shape;
    const auto axes = reduced_axes(plan.graph, node);
    Shape outer = x;
    Shape inner;
    for (const int64_t axis : axes) {
        outer[axis] = 1;
        inner.push_back(x[axis]);
    }
    const int64_t length = element_count(inner);
    const unsigned threads = length > 512 ? 256 : length > 64 ? 128 : 32;
    const int64_t per_thread = (length + threads - 1) / threads;
    Emitter emitter(plan);
    emitter.note_node(index);
    const Indices row = emitter.unravel("row", outer);
    std::string body = "__shared__ float shared[32];\nconst int row = blockIdx.x;\nfloat total;\n" +
                       emitter.take_body();
    const auto element = [&] {  // indices of element e, inside a lambda
        const Indices at = emitter.unravel("e", inner);
        Indices full = row;
        for (size_t i = 0; i < axes.size(); ++i) full[axes[i]] = at[i];
        return full;
    };
    emitter.open("const auto read = [&](int e) -> float");
    const Indices source_at = element();
    const std::string read = emitter.value(node.input(0), source_at);
    emitter.append(fmt::format("return {};\n", read));
    emitter.close();
    body += emitter.take_body() + ";\n";
    if (per_thread <= kCachedPerThread) {
        body += fmt::format(
            "float held[{}];\n#pragma unroll\nfor (int s = 0; s < {}; ++s) {{ const int e = "
            "s * {} + threadIdx.x; held[s] = e < {} ? read(e) : 0.0f; }}\n",
            per_thread, per_thread, threads, length);
        body += "#define X(e) held[s]\n";
    } else {
        body += "#define X(e) read(e)\n";
    }
    const RowBody parts = row_body(node, length, threads);
    body += parts.statistics;
    const DType dtype = plan.storage[target].dtype;
    const Shape& y = plan.graph.values[target].shape;
    if (parts.result.empty()) {
        Indices at;
        for (size_t i = 0; i < x.size(); ++i) {
            const bool reduced = std::ranges::find(axes, static_cast<int64_t>(i)) != axes.end();
            if (!reduced) at.push_back(row[i]);
            if (reduced && y.size() == x.size()) at.emplace_back("0");
        }
        body += fmt::format("if (threadIdx.x == 0) out[{}] = {};\n", emitter.offset(target, at),
                            stored_as(dtype, "total"));
    } else {
        emitter.open(row_loop(length, threads));
        const Indices at = element();
        emitter.append("const float x = X(e);\n");
        std::string result = parts.result;
        if (node.op != "Softmax") {
            const bool layer = node.op == "LayerNormalization";
            Indices scale_at = layer ? Indices{} : Indices{row[1]};
            for (const int64_t axis : axes) {
                if (layer) scale_at.push_back(at[axis]);
            }
            const auto parameter = [&](int value) {
                const size_t rank = plan.graph.values[value].shape.size();
                return emitter.value(
                    value, Indices(scale_at.end() - static_cast<int64_t>(rank), scale_at.end()));
            };
            result = fmt::format("({}) * {}", result, parameter(node.input(1)));
            if (node.input(2) != kAbsent) result += fmt::format(" + {}", parameter(node.input(2)));
        }
        emitter.append(
            fmt::format("out[{}] = {};\n", emitter.offset(target, at), stored_as(dtype, result)));
        emitter.close();
        body += emitter.take_body();
    }
    body += "#undef X\n";
    KernelStep step;
    step.name = name;
    step.threads = threads;
    step.blocks = static_cast<unsigned>(element_count(outer));
    step.source =
        fmt::format("extern \"C\" __global__ void __launch_bounds__({}) {}({}) {{\n{}}}\n", threads,
                    name, kernel_parameters(plan, emitter, target), body);
    return {step, kernel_label(plan, emitter), emitter.reads(), target};
}

}  // namespace newscaster::device::cuda
