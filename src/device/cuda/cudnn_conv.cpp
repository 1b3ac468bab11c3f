#include "device/cuda/cudnn_conv.h"

#include <cudnn_frontend.h>
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "newscaster/error.h"

namespace newscaster::device::cuda {

namespace {

namespace fe = cudnn_frontend;
using Extents = std::vector<int64_t>;

constexpr int64_t kPlansTried = 6;
constexpr int kTimedRuns = 5;
constexpr int64_t kWorkspaceLimit = int64_t{256} << 20U;

enum Uid : int64_t { kX = 1, kW, kBias, kY };

void check_cudnn(cudnnStatus_t status, const char* what) {
    if (status == CUDNN_STATUS_SUCCESS) return;
    throw Error(ErrorCode::runtime,
                fmt::format("cudnn: {}: {}", what, cudnnGetErrorString(status)));
}

void check_frontend(fe::error_t status, const std::string& label) {
    if (status.is_good()) return;
    std::string reason = status.get_message();
    reason = reason.substr(0, reason.find('\n'));
    throw Error(ErrorCode::runtime, fmt::format("cudnn: {}: {}", label, reason));
}

// cuDNN wants at least two spatial axes: a signal becomes a picture of height 1.
Extents spatial(Extents values, int64_t filler) {
    if (values.size() == 1) values.insert(values.begin(), filler);
    return values;
}

// Channels-last storage [N, spatial..., C] as cuDNN's (N, C, spatial...) extents.
Extents extents_of(const Storage& storage) {
    Extents inner = spatial({storage.extents.begin() + 1, storage.extents.end() - 1}, 1);
    inner.insert(inner.begin(), {storage.extents.front(), storage.extents.back()});
    return inner;
}

Extents channels_last_strides(const Extents& extents) {
    Extents strides(extents.size(), 1);
    int64_t stride = extents[1];
    for (size_t i = extents.size(); i > 2; --i) {
        strides[i - 1] = stride;
        stride *= extents[i - 1];
    }
    strides[0] = stride;
    return strides;
}

std::shared_ptr<fe::graph::Tensor_attributes> tensor(fe::graph::Graph& graph, Uid uid,
                                                     const char* name, const Extents& extents,
                                                     fe::DataType_t type) {
    return graph.tensor(fe::graph::Tensor_attributes()
                            .set_name(name)
                            .set_uid(uid)
                            .set_dim(extents)
                            .set_stride(channels_last_strides(extents))
                            .set_data_type(type));
}

}  // namespace

CudnnHandle::CudnnHandle() {
    cudnnHandle_t handle = nullptr;
    check_cudnn(cudnnCreate(&handle), "starting");
    handle_ = Owned<cudnnHandle_t, cudnnDestroy>(handle);
}

struct ConvPlan::State {
    fe::graph::Graph graph;
    std::string label;
    int64_t chosen = -1;
    size_t workspace = 0;
    bool has_bias = false;

    void build(const ConvStep& step, const Extents& x_extents, const Extents& y_extents,
               DType result);
    void tune(const CudnnHandle& handle, const Storage& x, const Storage& y, size_t weight_bytes,
              size_t bias_bytes);
    [[nodiscard]] float time(const CudnnHandle& handle, int64_t index,
                             std::unordered_map<int64_t, void*>& pack, void* memory,
                             cudaStream_t stream);
};

void ConvPlan::State::build(const ConvStep& step, const Extents& x_extents,
                            const Extents& y_extents, DType result_type) {
    graph.set_io_data_type(fe::DataType_t::HALF)
        .set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT);
    Extents w_extents = spatial(step.window.kernel, 1);
    w_extents.insert(w_extents.begin(), {y_extents[1], x_extents[1]});
    const auto x = tensor(graph, kX, "x", x_extents, fe::DataType_t::HALF);
    const auto w = tensor(graph, kW, "w", w_extents, fe::DataType_t::HALF);
    auto result = graph.conv_fprop(x, w,
                                   fe::graph::Conv_fprop_attributes()
                                       .set_name("conv")
                                       .set_pre_padding(spatial(step.window.pad_begin, 0))
                                       .set_post_padding(spatial(step.window.pad_end, 0))
                                       .set_stride(spatial(step.window.stride, 1))
                                       .set_dilation(spatial(step.window.dilation, 1)));
    if (step.has_bias) {
        Extents bias_extents(y_extents.size(), 1);
        bias_extents[1] = y_extents[1];
        const auto bias = tensor(graph, kBias, "bias", bias_extents, fe::DataType_t::FLOAT);
        result = graph.pointwise(
            result, bias,
            fe::graph::Pointwise_attributes().set_name("bias").set_mode(fe::PointwiseMode_t::ADD));
    }
    if (step.activation == Activation::leaky_relu) {
        result = graph.pointwise(result, fe::graph::Pointwise_attributes()
                                             .set_name("activation")
                                             .set_mode(fe::PointwiseMode_t::RELU_FWD)
                                             .set_relu_lower_clip_slope(step.slope));
    }
    result->set_output(true)
        .set_uid(kY)
        .set_dim(y_extents)
        .set_stride(channels_last_strides(y_extents))
        .set_data_type(result_type == DType::f32 ? fe::DataType_t::FLOAT : fe::DataType_t::HALF);
}

float ConvPlan::State::time(const CudnnHandle& handle, int64_t index,
                            std::unordered_map<int64_t, void*>& pack, void* memory,
                            cudaStream_t stream) {
    const OwnedEvent start = make_event();
    const OwnedEvent end = make_event();
    for (int i = 0; i <= kTimedRuns; ++i) {
        if (i == 1) check(cudaEventRecord(start.get(), stream), "timing");
        if (!graph.execute_plan_at_index(handle.get(), pack, memory, index).is_good()) {
            return std::numeric_limits<float>::infinity();
        }
    }
    check(cudaEventRecord(end.get(), stream), "timing");
    check(cudaEventSynchronize(end.get()), "timing");
    float elapsed_ms = 0.0F;
    check(cudaEventElapsedTime(&elapsed_ms, start.get(), end.get()), "timing");
    return elapsed_ms / kTimedRuns;
}

void ConvPlan::State::tune(const CudnnHandle& handle, const Storage& x, const Storage& y,
                           size_t weight_bytes, size_t bias_bytes) {
    const DeviceMemory x_memory(x.bytes());
    const DeviceMemory w_memory(weight_bytes);
    const DeviceMemory bias_memory(bias_bytes);
    const DeviceMemory y_memory(y.bytes());
    std::unordered_map<int64_t, void*> pack{
        {kX, x_memory.data()}, {kW, w_memory.data()}, {kY, y_memory.data()}};
    if (has_bias) pack[kBias] = bias_memory.data();
    const OwnedStream stream = make_cuda_stream();
    check_cudnn(cudnnSetStream(handle.get(), stream.get()), "stream");
    float best = std::numeric_limits<float>::infinity();
    int64_t tried = 0;
    const int64_t plans = graph.get_execution_plan_count();
    for (int64_t i = 0; i < plans && tried < kPlansTried; ++i) {
        if (!graph.build_plan_at_index(handle.get(), i).is_good()) continue;
        const int64_t bytes = graph.get_workspace_size_plan_at_index(i);
        if (bytes < 0 || bytes > kWorkspaceLimit) continue;
        ++tried;
        const DeviceMemory memory(static_cast<size_t>(bytes));
        const float elapsed = time(handle, i, pack, memory.data(), stream.get());
        if (elapsed < best) {
            best = elapsed;
            chosen = i;
            workspace = static_cast<size_t>(bytes);
        }
    }
    if (chosen < 0) {
        throw Error(ErrorCode::runtime,
                    fmt::format("cudnn: {}: none of {} plans runs here", label, plans));
    }
}

ConvPlan::ConvPlan(const CudnnHandle& handle, const ConvStep& step, const Storage& x,
                   const Storage& y, const std::string& label)
    : state_(std::make_unique<State>()) {
    State& s = *state_;
    s.label = label;
    s.has_bias = step.has_bias;
    const Extents x_extents = extents_of(x);
    const Extents y_extents = extents_of(y);
    s.build(step, x_extents, y_extents, y.dtype);
    check_frontend(s.graph.validate(), label);
    check_frontend(s.graph.build_operation_graph(handle.get()), label);
    check_frontend(s.graph.create_execution_plans({fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK}),
                   label);
    check_frontend(s.graph.check_support(handle.get()), label);
    const auto weights =
        static_cast<size_t>(element_count(step.window.kernel) * x_extents[1] * y_extents[1]);
    s.tune(handle, x, y, weights * 2, static_cast<size_t>(y_extents[1]) * 4);
}

ConvPlan::~ConvPlan() = default;
ConvPlan::ConvPlan(ConvPlan&&) noexcept = default;
ConvPlan& ConvPlan::operator=(ConvPlan&&) noexcept = default;

size_t ConvPlan::workspace_bytes() const {
    return state_->workspace;
}

void ConvPlan::enqueue(const CudnnHandle& handle, const void* x, const void* w, const void* bias,
                       void* y, void* workspace, cudaStream_t stream) const {
    check_cudnn(cudnnSetStream(handle.get(), stream), "stream");
    // cuDNN takes all addresses as void*; x, w and bias are only read.
    std::unordered_map<int64_t, void*> pack{
        {kX, const_cast<void*>(x)}, {kW, const_cast<void*>(w)}, {kY, y}};
    if (state_->has_bias) pack[kBias] = const_cast<void*>(bias);
    check_frontend(
        state_->graph.execute_plan_at_index(handle.get(), pack, workspace, state_->chosen),
        state_->label);
}

}  // namespace newscaster::device::cuda
