// A plan made executable: kernels loaded, library calls chosen, weights on the GPU.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "device/cuda/cublas_gemm.h"
#include "device/cuda/cuda_support.h"
#include "device/cuda/cudnn_conv.h"
#include "device/cuda/kernel_module.h"
#include "device/cuda/plan.h"

namespace newscaster::device::cuda {

// Library handles of one GPU. Sessions only need them while they record; the mutex is held then.
struct Libraries {
    std::mutex mutex;
    CudnnHandle cudnn;
    CublasHandle cublas;
};

// Everything of a graph that its sessions share; immutable after construction.
class Executable {
  public:
    // code: of compile_kernels for this plan and GPU.
    Executable(int ordinal, std::shared_ptr<Libraries> libraries, Plan plan,
               const std::vector<std::byte>& code);

    [[nodiscard]] const Plan& plan() const { return plan_; }
    [[nodiscard]] int ordinal() const { return ordinal_; }
    [[nodiscard]] const std::vector<TensorInfo>& inputs() const { return inputs_; }
    [[nodiscard]] const std::vector<TensorInfo>& outputs() const { return outputs_; }
    [[nodiscard]] size_t workspace_bytes() const { return workspace_bytes_; }
    [[nodiscard]] size_t constant_bytes() const { return constants_.bytes(); }

    // Enqueues every step. ports: device addresses of inputs and outputs by value index.
    void enqueue(std::byte* arena, std::byte* workspace, const std::map<int, std::byte*>& ports,
                 cudaStream_t stream) const;
    // Milliseconds of each step alone, the median of `repeats` runs after one to warm up.
    [[nodiscard]] std::vector<float> profile(std::byte* arena, std::byte* workspace,
                                             const std::map<int, std::byte*>& ports,
                                             cudaStream_t stream, int repeats) const;
    [[nodiscard]] std::mutex& library_mutex() const { return libraries_->mutex; }

  private:
    void enqueue_step(size_t index, std::byte* arena, std::byte* workspace,
                      const std::map<int, std::byte*>& ports, cudaStream_t stream) const;
    void upload_constants();
    void choose_library_kernels();

    int ordinal_;
    unsigned multiprocessors_ = 1;
    std::shared_ptr<Libraries> libraries_;
    Plan plan_;
    KernelModule kernels_;
    std::vector<TensorInfo> inputs_;
    std::vector<TensorInfo> outputs_;
    DeviceMemory constants_;
    std::map<int, size_t> constant_offset_;  // by value
    std::map<std::string, std::shared_ptr<ConvPlan>> conv_by_form_;
    std::map<size_t, std::shared_ptr<ConvPlan>> convs_;  // by step
    std::map<size_t, GemmPlan> gemms_;
    size_t workspace_bytes_ = 0;
};

class CudaGraph final : public Graph {
  public:
    explicit CudaGraph(std::shared_ptr<const Executable> executable)
        : executable_(std::move(executable)) {}
    [[nodiscard]] const std::vector<TensorInfo>& inputs() const override {
        return executable_->inputs();
    }
    [[nodiscard]] const std::vector<TensorInfo>& outputs() const override {
        return executable_->outputs();
    }
    [[nodiscard]] std::unique_ptr<Session> make_session() override;
    [[nodiscard]] const Executable& executable() const { return *executable_; }

  private:
    std::shared_ptr<const Executable> executable_;
};

}  // namespace newscaster::device::cuda
