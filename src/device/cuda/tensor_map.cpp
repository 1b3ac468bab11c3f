#include "device/cuda/tensor_map.h"

#include <cuda.h>
#include <fmt/format.h>

#include <cstring>

#include "device/cuda/cuda_support.h"
#include "newscaster/error.h"

namespace newscaster::device::cuda {

namespace {

using Encode = decltype(&cuTensorMapEncodeTiled);

// The driver's function without linking to the driver, which machines without a GPU lack.
Encode encoder() {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult status{};
    check(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000,
                                           cudaEnableDefault, &status),
          "looking for cuTensorMapEncodeTiled");
    if (found == nullptr || status != cudaDriverEntryPointSuccess) {
        throw Error(ErrorCode::runtime,
                    "cuda: found a driver without cuTensorMapEncodeTiled, wanted 12.0 or later");
    }
    return reinterpret_cast<Encode>(found);
}

CUtensorMapSwizzle swizzle_of(int64_t bytes) {
    if (bytes == 128) return CU_TENSOR_MAP_SWIZZLE_128B;
    return bytes == 64 ? CU_TENSOR_MAP_SWIZZLE_64B : CU_TENSOR_MAP_SWIZZLE_32B;
}

}  // namespace

TensorMap encode_box(const BoxLoad& load, const void* address, const std::string& label) {
    static_assert(sizeof(CUtensorMap) == sizeof(TensorMap));
    std::array<cuuint64_t, 5> extents{};
    std::array<cuuint64_t, 4> strides{};  // bytes, of all axes but the first
    cuuint64_t stride = 2;
    for (size_t i = 0; i < extents.size(); ++i) {
        extents[i] = static_cast<cuuint64_t>(load.extents[i]);
        stride *= extents[i];
        if (i < strides.size()) strides[i] = stride;
    }
    const auto span = [&](int64_t count) {  // of `count` elements, `step` apart
        return static_cast<cuuint32_t>((count - 1) * load.step + 1);
    };
    const std::array<cuuint32_t, 5> box{static_cast<cuuint32_t>(load.box[0]), span(load.box[1]),
                                        span(load.box[2]), 1, 1};
    const auto step = static_cast<cuuint32_t>(load.step);
    const std::array<cuuint32_t, 5> steps{1, step, step, 1, 1};
    CUtensorMap map;
    const CUresult result =
        encoder()(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 5, const_cast<void*>(address),
                  extents.data(), strides.data(), box.data(), steps.data(),
                  CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle_of(load.swizzle_bytes),
                  CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (result != CUDA_SUCCESS) {
        throw Error(ErrorCode::runtime, fmt::format("cuda: {}: describing the input failed with {}",
                                                    label, static_cast<int>(result)));
    }
    TensorMap copied;
    std::memcpy(&copied, &map, sizeof(map));
    return copied;
}

}  // namespace newscaster::device::cuda
