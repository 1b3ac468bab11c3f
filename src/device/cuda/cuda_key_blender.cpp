#include "device/cuda/cuda_key_blender.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "device/cuda/kernel_texts.h"
#include "newscaster/error.h"

namespace newscaster::device::cuda {

namespace {

constexpr const char* kMixName = "newscaster_mix_keys";
constexpr const char* kMoveName = "newscaster_move_keys";
constexpr int kThreads = 128;
constexpr int kPlaneSteps = 16;  // threads that share the planes of one place

// Same members as BlendPart and BlendView in key_blend.cuh.
struct Part {
    const std::byte* values = nullptr;
    const std::byte* shares = nullptr;
    const std::byte* x_offset = nullptr;
    const std::byte* y_offset = nullptr;
};
struct View {
    std::array<Part, KeyBlender::kMostParts> parts;
    std::byte* target = nullptr;
    int count = 0;
    int width = 1;
    int height = 1;
    int planes = 1;
    int share_grid = 1;
    int offset_grid = 1;
};

std::byte* address_of(Buffer* buffer, size_t offset, size_t bytes) {
    auto* memory = dynamic_cast<CudaBuffer*>(buffer);
    if (memory == nullptr) {
        throw Error(ErrorCode::runtime,
                    "blending keyframes: found another device's buffer, wanted a cuda one");
    }
    require_range(*memory, offset, bytes);
    return memory->address() + offset;
}

size_t entry_bytes(const KeyBlender::Entry& entry) {
    const auto& info = entry.buffer->info();
    if (info.dtype != DType::f32 || info.shape.empty() || info.shape.front() < 1) {
        throw Error(ErrorCode::runtime,
                    fmt::format("blending keyframes: tensor '{}': found {}{}, wanted f32 entries",
                                info.name, name_of(info.dtype), to_string(info.shape)));
    }
    return entry.buffer->bytes() / static_cast<size_t>(info.shape.front());
}

const std::byte* grid_of(const KeyBlender::Grids& grids, size_t part) {
    const size_t floats = static_cast<size_t>(grids.size) * static_cast<size_t>(grids.size);
    return address_of(grids.buffer, (grids.first + part * grids.stride) * sizeof(float),
                      floats * sizeof(float));
}

View view_of(const std::vector<KeyBlender::Entry>& parts, const KeyBlender::Grids& shares,
             const KeyBlender::Entry& target) {
    if (parts.empty() || parts.size() > KeyBlender::kMostParts) {
        throw Error(ErrorCode::runtime,
                    fmt::format("blending keyframes: found {} of them, wanted 1 to {}",
                                parts.size(), KeyBlender::kMostParts));
    }
    View view;
    const size_t bytes = entry_bytes(target);
    view.target = address_of(target.buffer, target.index * bytes, bytes);
    view.count = static_cast<int>(parts.size());
    view.share_grid = static_cast<int>(shares.size);
    const auto& shape = target.buffer->info().shape;
    const auto values = static_cast<int64_t>(bytes / sizeof(float));
    if (shape.size() > 3) {
        view.width = static_cast<int>(shape[shape.size() - 1]);
        view.height = static_cast<int>(shape[shape.size() - 2]);
        view.planes = static_cast<int>(values / (int64_t{view.width} * view.height));
    } else {
        view.width = static_cast<int>(values);
    }
    for (size_t i = 0; i < parts.size(); ++i) {
        if (entry_bytes(parts[i]) != bytes) {
            throw Error(ErrorCode::runtime,
                        fmt::format("blending keyframes: found entries of {} bytes, wanted {}",
                                    entry_bytes(parts[i]), bytes));
        }
        view.parts[i].values = address_of(parts[i].buffer, parts[i].index * bytes, bytes);
        view.parts[i].shares = grid_of(shares, i);
    }
    return view;
}

void launch(int ordinal, cudaKernel_t kernel, View view, int64_t places, unsigned rows,
            Stream& stream) {
    auto* queue = dynamic_cast<CudaStream*>(&stream);
    if (queue == nullptr) {
        throw Error(ErrorCode::runtime,
                    "blending keyframes: found another device's stream, wanted a cuda one");
    }
    std::array<void*, 1> arguments{&view};
    const auto blocks = static_cast<unsigned>((places + kThreads - 1) / kThreads);
    const DeviceScope scope(ordinal);
    check(cudaLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(blocks, rows),
                           dim3(kThreads), arguments.data(), 0, queue->get()),
          "blending keyframes");
}

}  // namespace

std::string key_blend_program() {
    return std::string(kKeyBlendText) + fmt::format(R"(
extern "C" __global__ void {}(BlendView view) {{
    const int place = blockIdx.x * blockDim.x + threadIdx.x;
    if (place < view.width * view.height) mix_place(view, place, blockIdx.y, gridDim.y);
}}
extern "C" __global__ void {}(BlendView view) {{
    const int pixel = blockIdx.x * blockDim.x + threadIdx.x;
    if (pixel < view.width * view.height) move_pixel(view, pixel);
}}
)",
                                                    kMixName, kMoveName);
}

CudaKeyBlender::CudaKeyBlender(int ordinal, const std::vector<std::byte>& code)
    : ordinal_(ordinal) {
    cudaLibrary_t library = nullptr;
    check(cudaLibraryLoadData(&library, code.data(), nullptr, nullptr, 0, nullptr, nullptr, 0),
          "loading the blending kernels");
    library_ = OwnedLibrary(library);
    check(cudaLibraryGetKernel(&mix_, library, kMixName), "finding a blending kernel");
    check(cudaLibraryGetKernel(&move_, library, kMoveName), "finding a blending kernel");
}

void CudaKeyBlender::mix(const std::vector<Entry>& parts, const Grids& shares, const Entry& target,
                         Stream& stream) const {
    const View view = view_of(parts, shares, target);
    launch(ordinal_, mix_, view, int64_t{view.width} * view.height,
           static_cast<unsigned>(std::min(view.planes, kPlaneSteps)), stream);
}

void CudaKeyBlender::move(const std::vector<Entry>& parts, const Grids& shares, const Grids& x,
                          const Grids& y, const Entry& target, Stream& stream) const {
    View view = view_of(parts, shares, target);
    if (view.planes != 3 || view.width != view.height || x.size != y.size) {
        throw Error(
            ErrorCode::runtime,
            fmt::format("blending keyframes: found {} planes of {}x{}, wanted 3 square ones",
                        view.planes, view.width, view.height));
    }
    view.offset_grid = static_cast<int>(x.size);
    for (size_t i = 0; i < parts.size(); ++i) {
        view.parts[i].x_offset = grid_of(x, i);
        view.parts[i].y_offset = grid_of(y, i);
    }
    launch(ordinal_, move_, view, int64_t{view.width} * view.height, 1, stream);
}

}  // namespace newscaster::device::cuda
