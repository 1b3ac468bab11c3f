// What the copy engine of compute capability 9.0 needs to know of a tensor.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "device/cuda/plan.h"

namespace newscaster::device::cuda {

// CUtensorMap without the driver's header.
struct alignas(64) TensorMap {
    std::array<uint64_t, 16> words{};
};

// The map of a channels-last f16 tensor at `address`; outside of it boxes read zeros. Throws
// Error(runtime) naming `label`.
[[nodiscard]] TensorMap encode_box(const BoxLoad& box, const void* address,
                                   const std::string& label);

}  // namespace newscaster::device::cuda
