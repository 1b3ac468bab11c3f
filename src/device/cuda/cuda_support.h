// Owners of CUDA resources and the translation of its error codes.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <string>
#include <utility>

#include "device/device.h"

namespace newscaster::device::cuda {

// Throws Error(runtime) "cuda: WHAT: reason".
void check(cudaError_t status, const char* what);

// Makes a device current for this thread, and the one before again at the end.
class DeviceScope {
  public:
    explicit DeviceScope(int ordinal);
    DeviceScope(const DeviceScope&) = delete;
    DeviceScope& operator=(const DeviceScope&) = delete;
    ~DeviceScope();

  private:
    int previous_ = 0;
};

// A move-only handle, destroyed by Free.
template <typename Handle, auto Free>
class Owned {
  public:
    Owned() = default;
    explicit Owned(Handle handle) : handle_(handle) {}
    Owned(Owned&& other) noexcept : handle_(std::exchange(other.handle_, Handle{})) {}
    Owned& operator=(Owned&& other) noexcept {
        std::swap(handle_, other.handle_);
        return *this;
    }
    Owned(const Owned&) = delete;
    Owned& operator=(const Owned&) = delete;
    ~Owned() {
        if (handle_ != Handle{}) static_cast<void>(Free(handle_));
    }
    [[nodiscard]] Handle get() const { return handle_; }
    [[nodiscard]] explicit operator bool() const { return handle_ != Handle{}; }

  private:
    Handle handle_{};
};

using OwnedStream = Owned<cudaStream_t, cudaStreamDestroy>;
using OwnedGraph = Owned<cudaGraph_t, cudaGraphDestroy>;
using OwnedGraphExec = Owned<cudaGraphExec_t, cudaGraphExecDestroy>;
using OwnedLibrary = Owned<cudaLibrary_t, cudaLibraryUnload>;

using OwnedEvent = Owned<cudaEvent_t, cudaEventDestroy>;

[[nodiscard]] OwnedStream make_cuda_stream();
// What `enqueue` enqueues on `stream`, as a graph that can be launched; nothing runs.
[[nodiscard]] OwnedGraphExec captured(cudaStream_t stream, const std::function<void()>& enqueue);
[[nodiscard]] OwnedEvent make_event();

// Zero-filled device memory; 0 bytes is allowed.
class DeviceMemory {
  public:
    DeviceMemory() = default;
    explicit DeviceMemory(size_t bytes);
    [[nodiscard]] std::byte* data() const { return static_cast<std::byte*>(memory_.get()); }
    [[nodiscard]] size_t bytes() const { return bytes_; }

  private:
    Owned<void*, cudaFree> memory_;
    size_t bytes_ = 0;
};

class CudaStream final : public Stream {
  public:
    explicit CudaStream(int ordinal);
    void synchronize() override;
    [[nodiscard]] cudaStream_t get() const { return stream_.get(); }
    [[nodiscard]] int ordinal() const { return ordinal_; }

  private:
    int ordinal_;
    OwnedStream stream_;
};

// Device memory, or page-locked host memory (for Location::host too: every copy is a DMA then).
class CudaBuffer final : public Buffer {
  public:
    CudaBuffer(int ordinal, TensorInfo info, Location location);
    [[nodiscard]] std::byte* host_data() override;
    // Address of the memory, on the device or in page-locked host memory.
    [[nodiscard]] std::byte* address() const {
        return device_memory_.data() != nullptr ? device_memory_.data()
                                                : static_cast<std::byte*>(host_memory_.get());
    }
    [[nodiscard]] int ordinal() const { return ordinal_; }

  private:
    int ordinal_;
    DeviceMemory device_memory_;
    Owned<void*, cudaFreeHost> host_memory_;
};

}  // namespace newscaster::device::cuda
