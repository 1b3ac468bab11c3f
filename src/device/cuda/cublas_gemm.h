// Matrix products through cuBLASLt.
#pragma once

#include <cublasLt.h>

#include <memory>

#include "device/cuda/cuda_support.h"
#include "device/cuda/plan.h"

namespace newscaster::device::cuda {

// Not thread-safe. Belongs to the device that is current when it is made.
class CublasHandle {
  public:
    CublasHandle();
    [[nodiscard]] cublasLtHandle_t get() const { return handle_.get(); }

  private:
    Owned<cublasLtHandle_t, cublasLtDestroy> handle_;
};

// One product with a chosen algorithm; immutable once made. f32 accumulation; f32 operands are
// not rounded to TF32.
class GemmPlan {
  public:
    // dtype: f32 or f16, of both operands and the result. Throws Error(runtime) naming `label`.
    GemmPlan(const CublasHandle& handle, const GemmStep& step, DType dtype,
             const std::string& label);
    ~GemmPlan();
    GemmPlan(GemmPlan&&) noexcept;
    GemmPlan& operator=(GemmPlan&&) noexcept;

    [[nodiscard]] size_t workspace_bytes() const;
    void enqueue(const CublasHandle& handle, const void* a, const void* b, void* y, void* workspace,
                 cudaStream_t stream) const;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace newscaster::device::cuda
