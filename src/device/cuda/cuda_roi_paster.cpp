#include "device/cuda/cuda_roi_paster.h"

#include <fmt/format.h>

#include <array>

#include "device/cuda/kernel_texts.h"
#include "newscaster/error.h"

namespace newscaster::device::cuda {

namespace {

constexpr const char* kKernelName = "newscaster_roi_paste";
constexpr int kThreads = 128;
constexpr int64_t kChannels = 3;

}  // namespace

// Same members as RoiView in roi_paste.cuh.
struct CudaRoiPaster::View {
    int width;
    int height;
    int crop_size;
    int separable;
    std::array<const std::byte*, 8> tables;
};

std::string roi_paste_program() {
    return std::string(kRoiPasteText) + fmt::format(R"(
extern "C" __global__ void {}(RoiView roi, const float* crop, unsigned char* nv12) {{
    const int block = blockIdx.x * blockDim.x + threadIdx.x;
    if (block < roi.width / 2 * (roi.height / 2)) paste_block(roi, block, crop, nv12);
}}
)",
                                                    kKernelName);
}

RoiPasteKernel::RoiPasteKernel(const std::vector<std::byte>& code) {
    cudaLibrary_t library = nullptr;
    check(cudaLibraryLoadData(&library, code.data(), nullptr, nullptr, 0, nullptr, nullptr, 0),
          "loading the paste-back kernel");
    library_ = OwnedLibrary(library);
    check(cudaLibraryGetKernel(&kernel_, library, kKernelName), "finding the paste-back kernel");
}

CudaRoiPaster::CudaRoiPaster(int ordinal, std::shared_ptr<const RoiPasteKernel> kernel,
                             const RoiTables& tables)
    : ordinal_(ordinal),
      kernel_(std::move(kernel)),
      width_(tables.width),
      height_(tables.height),
      crop_size_(tables.crop_size) {
    const std::array<std::span<const std::byte>, 8> parts{
        std::as_bytes(std::span(tables.background)),
        std::as_bytes(std::span(tables.column_tap)),
        std::as_bytes(std::span(tables.column_weights)),
        std::as_bytes(std::span(tables.row_tap)),
        std::as_bytes(std::span(tables.mix_weights)),
        std::as_bytes(std::span(tables.tap)),
        std::as_bytes(std::span(tables.upper)),
        std::as_bytes(std::span(tables.lower))};
    size_t total = 0;
    for (const auto& part : parts) total += part.size();
    const DeviceScope scope(ordinal);
    tables_ = DeviceMemory(total);
    View view{width_, height_, crop_size_, tables.separable ? 1 : 0, {}};
    size_t offset = 0;
    for (size_t i = 0; i < parts.size(); ++i) {
        view.tables[i] = tables_.data() + offset;
        if (parts[i].empty()) continue;
        check(cudaMemcpy(tables_.data() + offset, parts[i].data(), parts[i].size(),
                         cudaMemcpyHostToDevice),
              "uploading paste-back tables");
        offset += parts[i].size();
    }
    view_ = std::make_shared<const View>(view);
}

void CudaRoiPaster::paste(Buffer& crops, int64_t index, Buffer& target, size_t offset,
                          Stream& stream) const {
    auto* from = dynamic_cast<CudaBuffer*>(&crops);
    auto* to = dynamic_cast<CudaBuffer*>(&target);
    auto* queue = dynamic_cast<CudaStream*>(&stream);
    if (from == nullptr || to == nullptr || queue == nullptr) {
        throw Error(ErrorCode::runtime,
                    "paste-back: found another device's buffer or stream, wanted cuda ones");
    }
    const size_t crop_bytes = sizeof(float) * kChannels * static_cast<size_t>(crop_size_) *
                              static_cast<size_t>(crop_size_);
    const size_t begin = static_cast<size_t>(index) * crop_bytes;
    require_range(crops, begin, crop_bytes);
    require_range(target, offset,
                  static_cast<size_t>(width_) * static_cast<size_t>(height_) * 3 / 2);
    View view = *view_;
    std::byte* crop = from->address() + begin;
    std::byte* nv12 = to->address() + offset;
    std::array<void*, 3> arguments{&view, static_cast<void*>(&crop), static_cast<void*>(&nv12)};
    const int blocks = (width_ / 2 * (height_ / 2) + kThreads - 1) / kThreads;
    const DeviceScope scope(ordinal_);
    check(cudaLaunchKernel(reinterpret_cast<const void*>(kernel_->get()),
                           dim3(static_cast<unsigned>(blocks)), dim3(kThreads), arguments.data(), 0,
                           queue->get()),
          "paste-back");
}

}  // namespace newscaster::device::cuda
