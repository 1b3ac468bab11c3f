// Convolution + bias + activation through cuDNN's graphs, f16 with f32 accumulation, channels last.
#pragma once

#include <cudnn.h>

#include <memory>
#include <string>

#include "device/cuda/cuda_support.h"
#include "device/cuda/plan.h"

namespace newscaster::device::cuda {

// Not thread-safe. Belongs to the device that is current when it is made.
class CudnnHandle {
  public:
    CudnnHandle();
    [[nodiscard]] cudnnHandle_t get() const { return handle_.get(); }

  private:
    Owned<cudnnHandle_t, cudnnDestroy> handle_;
};

// One convolution with the fastest of cuDNN's first proposals, timed on this GPU when it is made.
class ConvPlan {
  public:
    // x, y: channels-last storage. Throws Error(runtime) naming `label` when cuDNN has no kernel.
    ConvPlan(const CudnnHandle& handle, const ConvStep& step, const Storage& x, const Storage& y,
             const std::string& label);
    ~ConvPlan();
    ConvPlan(ConvPlan&&) noexcept;
    ConvPlan& operator=(ConvPlan&&) noexcept;

    [[nodiscard]] size_t workspace_bytes() const;
    // bias: f32, or nullptr when the step has none.
    void enqueue(const CudnnHandle& handle, const void* x, const void* w, const void* bias, void* y,
                 void* workspace, cudaStream_t stream) const;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace newscaster::device::cuda
