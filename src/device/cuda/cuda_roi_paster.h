// Paste-back on the GPU, by the kernel in roi_paste.cuh.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "device/cuda/cuda_support.h"
#include "device/device.h"

namespace newscaster::device::cuda {

// Source of the program that CudaRoiPaster runs.
[[nodiscard]] std::string roi_paste_program();

// The loaded program; shared by the pasters of a device.
class RoiPasteKernel {
  public:
    // code: roi_paste_program(), compiled for the current device.
    explicit RoiPasteKernel(const std::vector<std::byte>& code);
    [[nodiscard]] cudaKernel_t get() const { return kernel_; }

  private:
    OwnedLibrary library_;
    cudaKernel_t kernel_ = nullptr;
};

class CudaRoiPaster final : public RoiPaster {
  public:
    CudaRoiPaster(int ordinal, std::shared_ptr<const RoiPasteKernel> kernel,
                  const RoiTables& tables);
    void paste(Buffer& crops, int64_t index, Buffer& target, size_t offset,
               Stream& stream) const override;

  private:
    struct View;  // the kernel's RoiView

    int ordinal_;
    std::shared_ptr<const RoiPasteKernel> kernel_;
    int width_;
    int height_;
    int crop_size_;
    DeviceMemory tables_;  // one block, every table at its offset
    std::shared_ptr<const View> view_;
};

}  // namespace newscaster::device::cuda
