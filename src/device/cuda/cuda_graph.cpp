#include "device/cuda/cuda_graph.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "device/cuda/tensor_map.h"
#include "newscaster/error.h"

namespace newscaster::device::cuda {

namespace {

constexpr size_t kAlignment = 256;

size_t aligned(size_t bytes) {
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// Convolutions with the same key run the same cuDNN plan.
std::string form_of(const ConvStep& step, const Storage& x, const Storage& y) {
    const Window& w = step.window;
    return fmt::format("{} {} {} {} {} {} {} {} {} {} {}", name_of(y.dtype), x.extents, y.extents,
                       w.kernel, w.stride, w.dilation, w.pad_begin, w.pad_end, step.has_bias,
                       static_cast<int>(step.activation), step.slope);
}

std::vector<TensorInfo> infos(const GraphIr& graph, const std::vector<int>& values) {
    std::vector<TensorInfo> result;
    result.reserve(values.size());
    for (const int value : values) {
        result.push_back(
            {graph.values[value].name, graph.values[value].dtype, graph.values[value].shape});
    }
    return result;
}

}  // namespace

Executable::Executable(int ordinal, std::shared_ptr<Libraries> libraries, Plan plan,
                       const std::vector<std::byte>& code)
    : ordinal_(ordinal),
      libraries_(std::move(libraries)),
      plan_(std::move(plan)),
      kernels_(code, plan_),
      inputs_(infos(plan_.graph, plan_.graph.inputs)),
      outputs_(infos(plan_.graph, plan_.graph.outputs)) {
    int count = 0;
    check(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, ordinal_),
          "reading the GPU's properties");
    multiprocessors_ = static_cast<unsigned>(count);
    upload_constants();
    choose_library_kernels();
}

void Executable::upload_constants() {
    std::map<int, Tensor> converted;
    size_t total = 0;
    for (const auto& step : plan_.steps) {
        for (const int read : step.reads) {
            if (plan_.storage[read].place != Place::constant || constant_offset_.contains(read))
                continue;
            const Tensor& tensor = *plan_.graph.values[read].constant;
            constant_offset_[read] = total;
            if (plan_.storage[read].dtype != tensor.dtype())
                converted.emplace(read, tensor.to_f32());
            total += aligned(plan_.storage[read].bytes());
        }
    }
    constants_ = DeviceMemory(total);
    for (const auto& [value, offset] : constant_offset_) {
        const auto found = converted.find(value);
        const Tensor& tensor =
            found != converted.end() ? found->second : *plan_.graph.values[value].constant;
        check(cudaMemcpy(constants_.data() + offset, tensor.data(), tensor.bytes(),
                         cudaMemcpyHostToDevice),
              "uploading weights");
    }
}

void Executable::choose_library_kernels() {
    const std::scoped_lock lock(libraries_->mutex);
    for (size_t i = 0; i < plan_.steps.size(); ++i) {
        const Step& step = plan_.steps[i];
        const Storage& y = plan_.storage[step.writes];
        if (const auto* conv = std::get_if<ConvStep>(&step.work)) {
            const Storage& x = plan_.storage[step.reads[0]];
            auto& chosen = conv_by_form_[form_of(*conv, x, y)];
            if (chosen == nullptr) {
                chosen = std::make_shared<ConvPlan>(libraries_->cudnn, *conv, x, y, step.label);
            }
            convs_[i] = chosen;
            workspace_bytes_ = std::max(workspace_bytes_, chosen->workspace_bytes());
        } else if (const auto* gemm = std::get_if<GemmStep>(&step.work)) {
            const auto [at, added] =
                gemms_.emplace(i, GemmPlan(libraries_->cublas, *gemm, y.dtype, step.label));
            workspace_bytes_ = std::max(workspace_bytes_, at->second.workspace_bytes());
        }
    }
}

void Executable::enqueue(std::byte* arena, std::byte* workspace,
                         const std::map<int, std::byte*>& ports, cudaStream_t stream) const {
    for (size_t i = 0; i < plan_.steps.size(); ++i)
        enqueue_step(i, arena, workspace, ports, stream);
}

void Executable::enqueue_step(size_t index, std::byte* arena, std::byte* workspace,
                              const std::map<int, std::byte*>& ports, cudaStream_t stream) const {
    const auto address = [&](int value) -> std::byte* {
        switch (plan_.storage[value].place) {
            case Place::arena:
                return arena + plan_.arena_offset[value];
            case Place::constant:
                return constants_.data() + constant_offset_.at(value);
            case Place::input:
            case Place::output:
                return ports.at(value);
            default:
                throw Error(ErrorCode::runtime,
                            fmt::format("{}: value '{}' has no memory", plan_.graph.origin,
                                        plan_.graph.values[value].name));
        }
    };
    const Step& step = plan_.steps[index];
    std::vector<std::byte*> pointers;
    for (const int read : step.reads) pointers.push_back(address(read));
    pointers.push_back(address(step.writes));
    if (const auto* kernel = std::get_if<KernelStep>(&step.work)) {
        std::vector<void*> arguments;
        for (auto& pointer : pointers) arguments.push_back(static_cast<void*>(&pointer));
        TensorMap map;
        unsigned blocks = kernel->blocks;
        if (kernel->box) {
            map = encode_box(*kernel->box, pointers[0], step.label);
            arguments[0] = &map;
            blocks = std::min(blocks, multiprocessors_);
        }
        check(cudaLaunchKernel(reinterpret_cast<const void*>(kernels_.kernel(kernel->name)),
                               dim3(blocks), dim3(kernel->threads), arguments.data(),
                               kernel->shared_bytes, stream),
              step.label.c_str());
    } else if (const auto* conv = std::get_if<ConvStep>(&step.work)) {
        convs_.at(index)->enqueue(libraries_->cudnn, pointers[0], pointers[1],
                                  conv->has_bias ? pointers[2] : nullptr, pointers.back(),
                                  workspace, stream);
    } else {
        gemms_.at(index).enqueue(libraries_->cublas, pointers[0], pointers[1], pointers.back(),
                                 workspace, stream);
    }
}

std::vector<float> Executable::profile(std::byte* arena, std::byte* workspace,
                                       const std::map<int, std::byte*>& ports, cudaStream_t stream,
                                       int repeats) const {
    std::vector<float> medians;
    const OwnedEvent start = make_event();
    const OwnedEvent end = make_event();
    for (size_t i = 0; i < plan_.steps.size(); ++i) {
        enqueue_step(i, arena, workspace, ports, stream);
        std::vector<float> times;
        for (int repeat = 0; repeat < repeats; ++repeat) {
            check(cudaEventRecord(start.get(), stream), "timing");
            enqueue_step(i, arena, workspace, ports, stream);
            check(cudaEventRecord(end.get(), stream), "timing");
            check(cudaEventSynchronize(end.get()), "timing");
            float elapsed_ms = 0.0F;
            check(cudaEventElapsedTime(&elapsed_ms, start.get(), end.get()), "timing");
            times.push_back(elapsed_ms);
        }
        std::ranges::sort(times);
        medians.push_back(times[times.size() / 2]);
    }
    return medians;
}

}  // namespace newscaster::device::cuda
