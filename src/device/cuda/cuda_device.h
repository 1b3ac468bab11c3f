// The "cuda" provider. Vendor types stay in this folder.
#pragma once

#include <memory>

#include "device/device.h"

namespace newscaster::device {

// GPUs that the driver offers; 0 also when there is no driver.
[[nodiscard]] int cuda_device_count();

// options.ordinal picks the GPU. Throws Error(device_unavailable) when there is none or it is too
// old (compute capability below 7.5).
[[nodiscard]] std::unique_ptr<Device> open_cuda_device(const DeviceOptions& options);

}  // namespace newscaster::device
