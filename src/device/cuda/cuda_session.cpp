#include "device/cuda/cuda_session.h"

#include <fmt/format.h>

#include <algorithm>

#include "newscaster/error.h"

namespace newscaster::device::cuda {

CudaSession::CudaSession(std::shared_ptr<const Executable> executable)
    : executable_(std::move(executable)) {
    const DeviceScope scope(executable_->ordinal());
    arena_ = DeviceMemory(executable_->plan().arena_bytes);
    workspace_ = DeviceMemory(executable_->workspace_bytes());
    recording_ = make_cuda_stream();
    for (const int value : executable_->plan().graph.outputs) {
        bound_[value] =
            std::make_shared<CudaBuffer>(executable_->ordinal(), info(value), Location::device);
    }
}

int CudaSession::port(const std::string& tensor) const {
    const GraphIr& graph = executable_->plan().graph;
    for (const auto* list : {&graph.inputs, &graph.outputs}) {
        for (const int value : *list) {
            if (graph.values[value].name == tensor) return value;
        }
    }
    throw Error(
        ErrorCode::bad_pack,
        fmt::format("{}: found no tensor '{}' among inputs and outputs", graph.origin, tensor));
}

bool CudaSession::is_input(int value) const {
    return executable_->plan().storage[value].place == Place::input;
}

const TensorInfo& CudaSession::info(int value) const {
    const GraphIr& graph = executable_->plan().graph;
    const auto input = std::ranges::find(graph.inputs, value);
    if (input != graph.inputs.end()) return executable_->inputs()[input - graph.inputs.begin()];
    const auto output = std::ranges::find(graph.outputs, value);
    return executable_->outputs().at(output - graph.outputs.begin());
}

void CudaSession::bind(const std::string& tensor, BufferPtr buffer) {
    const int value = port(tensor);
    const TensorInfo& wanted = info(value);
    const auto ours = std::dynamic_pointer_cast<CudaBuffer>(buffer);
    const std::string& origin = executable_->plan().graph.origin;
    if (ours == nullptr || ours->ordinal() != executable_->ordinal()) {
        throw Error(
            ErrorCode::runtime,
            fmt::format("{}: tensor '{}': found {}, wanted a buffer of cuda device {}", origin,
                        tensor, buffer == nullptr ? "no buffer" : "another device's buffer",
                        executable_->ordinal()));
    }
    const TensorInfo& found = ours->info();
    if (found.dtype != wanted.dtype || found.shape != wanted.shape) {
        throw Error(ErrorCode::bad_pack,
                    fmt::format("{}: tensor '{}': found {}{}, wanted {}{}", origin, tensor,
                                newscaster::name_of(found.dtype), to_string(found.shape),
                                newscaster::name_of(wanted.dtype), to_string(wanted.shape)));
    }
    bound_[value] = ours;
    replay_ = {};
}

BufferPtr CudaSession::buffer(const std::string& tensor) {
    const auto found = bound_.find(port(tensor));
    if (found == bound_.end()) {
        throw Error(ErrorCode::runtime, fmt::format("{}: tensor '{}': nothing is bound",
                                                    executable_->plan().graph.origin, tensor));
    }
    return found->second;
}

void CudaSession::record() {
    const GraphIr& graph = executable_->plan().graph;
    std::map<int, std::byte*> ports;
    staged_.clear();
    for (const int input : graph.inputs) {
        if (!bound_.contains(input)) {
            throw Error(ErrorCode::runtime, fmt::format("{}: tensor '{}': nothing is bound",
                                                        graph.origin, graph.values[input].name));
        }
    }
    for (const auto& [value, buffer] : bound_) {
        if (buffer->location() != Location::device) staged_[value] = DeviceMemory(buffer->bytes());
        ports[value] =
            buffer->location() == Location::device ? buffer->address() : staged_[value].data();
    }
    const std::scoped_lock lock(executable_->library_mutex());
    cudaStream_t stream = recording_.get();
    replay_ = captured(stream, [&] {
        for (const auto& [value, memory] : staged_) {
            if (!is_input(value)) continue;
            check(cudaMemcpyAsync(memory.data(), bound_.at(value)->address(), memory.bytes(),
                                  cudaMemcpyHostToDevice, stream),
                  "recording a copy");
        }
        executable_->enqueue(arena_.data(), workspace_.data(), ports, stream);
        for (const auto& [value, memory] : staged_) {
            if (is_input(value)) continue;
            check(cudaMemcpyAsync(bound_.at(value)->address(), memory.data(), memory.bytes(),
                                  cudaMemcpyDeviceToHost, stream),
                  "recording a copy");
        }
    });
}

void CudaSession::run(Stream& stream) {
    const auto* target = dynamic_cast<CudaStream*>(&stream);
    if (target == nullptr || target->ordinal() != executable_->ordinal()) {
        throw Error(ErrorCode::runtime,
                    fmt::format("{}: found another device's stream, wanted one of cuda device {}",
                                executable_->plan().graph.origin, executable_->ordinal()));
    }
    const DeviceScope scope(executable_->ordinal());
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    check(cudaStreamIsCapturing(target->get(), &capture), executable_->plan().graph.origin.c_str());
    if (capture != cudaStreamCaptureStatusNone) {  // a recording takes the steps, not the graph
        const auto ports = device_ports();
        const std::scoped_lock lock(executable_->library_mutex());
        executable_->enqueue(arena_.data(), workspace_.data(), ports, target->get());
        return;
    }
    if (!replay_) record();
    check(cudaGraphLaunch(replay_.get(), target->get()), executable_->plan().graph.origin.c_str());
}

void CudaSession::prepare() {
    const DeviceScope scope(executable_->ordinal());
    if (!replay_) record();
}

// Throws Error(runtime) unless every port is bound to device memory.
std::map<int, std::byte*> CudaSession::device_ports() const {
    const GraphIr& graph = executable_->plan().graph;
    std::map<int, std::byte*> ports;
    for (const auto* list : {&graph.inputs, &graph.outputs}) {
        for (const int value : *list) {
            const auto found = bound_.find(value);
            if (found == bound_.end() || found->second->location() != Location::device) {
                throw Error(ErrorCode::runtime,
                            fmt::format("{}: tensor '{}': found no device memory bound, wanted it",
                                        graph.origin, graph.values[value].name));
            }
            ports[value] = found->second->address();
        }
    }
    return ports;
}

std::vector<float> CudaSession::profile(int repeats) {
    const DeviceScope scope(executable_->ordinal());
    const auto ports = device_ports();
    const std::scoped_lock lock(executable_->library_mutex());
    return executable_->profile(arena_.data(), workspace_.data(), ports, recording_.get(), repeats);
}

std::unique_ptr<Session> CudaGraph::make_session() {
    return std::make_unique<CudaSession>(executable_);
}

}  // namespace newscaster::device::cuda
