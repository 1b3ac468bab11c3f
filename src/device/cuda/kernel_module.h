// Generated kernels, compiled for one GPU with NVRTC.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "core/log.h"
#include "device/cuda/cuda_support.h"
#include "device/cuda/plan.h"

namespace newscaster::device::cuda {

// Machine code of all kernels of a plan. capability: e.g. 90. Throws Error(runtime) with the
// compiler's first message.
[[nodiscard]] std::vector<std::byte> compile_kernels(const Plan& plan, int capability);
// The same for any source; origin: what errors name.
[[nodiscard]] std::vector<std::byte> compile_source(const std::string& source,
                                                    const std::string& origin, int capability);
// The source that compile_kernels compiles; its hash keys the cache.
[[nodiscard]] std::string kernel_program(const Plan& plan);

// Loaded on the current device.
class KernelModule {
  public:
    KernelModule(const std::vector<std::byte>& code, const Plan& plan);
    [[nodiscard]] cudaKernel_t kernel(const std::string& name) const { return kernels_.at(name); }

  private:
    OwnedLibrary library_;
    std::map<std::string, cudaKernel_t> kernels_;
};

}  // namespace newscaster::device::cuda
