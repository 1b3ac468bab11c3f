#include "device/cuda/cuda_support.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "newscaster/error.h"

namespace newscaster::device::cuda {

void check(cudaError_t status, const char* what) {
    if (status == cudaSuccess) return;
    static_cast<void>(cudaGetLastError());  // or the next call reports it again
    throw Error(ErrorCode::runtime, fmt::format("cuda: {}: {}", what, cudaGetErrorString(status)));
}

DeviceScope::DeviceScope(int ordinal) {
    check(cudaGetDevice(&previous_), "current device");
    check(cudaSetDevice(ordinal), "choosing the device");
}

DeviceScope::~DeviceScope() {
    static_cast<void>(cudaSetDevice(previous_));
}

OwnedStream make_cuda_stream() {
    cudaStream_t stream = nullptr;
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "creating a stream");
    return OwnedStream(stream);
}

OwnedGraphExec captured(cudaStream_t stream, const std::function<void()>& enqueue) {
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "recording");
    cudaGraph_t recorded = nullptr;
    try {
        enqueue();
    } catch (...) {
        static_cast<void>(cudaStreamEndCapture(stream, &recorded));
        const OwnedGraph dropped(recorded);
        static_cast<void>(cudaGetLastError());
        throw;
    }
    check(cudaStreamEndCapture(stream, &recorded), "recording");
    const OwnedGraph owned(recorded);
    cudaGraphExec_t replay = nullptr;
    check(cudaGraphInstantiate(&replay, recorded, 0), "preparing the recorded work");
    OwnedGraphExec result(replay);
    check(cudaGraphUpload(replay, stream), "preparing the recorded work");
    check(cudaStreamSynchronize(stream), "preparing the recorded work");
    return result;
}

OwnedEvent make_event() {
    cudaEvent_t event = nullptr;
    check(cudaEventCreate(&event), "creating an event");
    return OwnedEvent(event);
}

DeviceMemory::DeviceMemory(size_t bytes) : bytes_(bytes) {
    if (bytes == 0) return;
    void* memory = nullptr;
    check(cudaMalloc(&memory, bytes), "allocating device memory");
    memory_ = Owned<void*, cudaFree>(memory);
    check(cudaMemset(memory, 0, bytes), "clearing device memory");
    // The clear runs on the default stream, which other streams do not wait for.
    check(cudaStreamSynchronize(nullptr), "clearing device memory");
}

CudaStream::CudaStream(int ordinal) : ordinal_(ordinal) {
    const DeviceScope scope(ordinal);
    stream_ = make_cuda_stream();
}

void CudaStream::synchronize() {
    check(cudaStreamSynchronize(stream_.get()), "waiting for a stream");
}

CudaBuffer::CudaBuffer(int ordinal, TensorInfo info, Location location)
    : Buffer(std::move(info), location), ordinal_(ordinal) {
    const DeviceScope scope(ordinal);
    if (location == Location::device) {
        device_memory_ = DeviceMemory(bytes());
        return;
    }
    void* memory = nullptr;
    const size_t size = std::max<size_t>(bytes(), 1);
    check(cudaHostAlloc(&memory, size, cudaHostAllocDefault), "allocating page-locked memory");
    host_memory_ = Owned<void*, cudaFreeHost>(memory);
    std::memset(memory, 0, size);
}

std::byte* CudaBuffer::host_data() {
    return static_cast<std::byte*>(host_memory_.get());
}

}  // namespace newscaster::device::cuda
