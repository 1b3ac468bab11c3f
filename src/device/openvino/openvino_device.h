// The "cpu" provider: OpenVINO's CPU plugin. Vendor types stay in this folder.
#pragma once

#include <memory>

#include "device/device.h"

namespace newscaster::device {

// Throws Error(device_unavailable) when the OpenVINO runtime or its CPU plugin cannot be loaded.
[[nodiscard]] std::unique_ptr<Device> open_openvino_device(const DeviceOptions& options);

}  // namespace newscaster::device
