// Frames in between on the GPU, by the kernels in key_blend.cuh.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "device/cuda/cuda_support.h"
#include "device/key_blender.h"

namespace newscaster::device::cuda {

// Source of the program that CudaKeyBlender runs.
[[nodiscard]] std::string key_blend_program();

class CudaKeyBlender final : public KeyBlender {
  public:
    // code: key_blend_program(), compiled for the GPU `ordinal`, which is current.
    CudaKeyBlender(int ordinal, const std::vector<std::byte>& code);

    void mix(const std::vector<Entry>& parts, const Grids& shares, const Entry& target,
             Stream& stream) const override;
    void move(const std::vector<Entry>& parts, const Grids& shares, const Grids& x, const Grids& y,
              const Entry& target, Stream& stream) const override;

  private:
    int ordinal_;
    OwnedLibrary library_;
    cudaKernel_t mix_ = nullptr;
    cudaKernel_t move_ = nullptr;
};

}  // namespace newscaster::device::cuda
