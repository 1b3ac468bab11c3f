#include "pipeline/batch_inputs.h"

#include <fmt/format.h>

#include <algorithm>

#include "newscaster/error.h"

namespace newscaster::pipeline {

BatchInputs::BatchInputs(device::Device& device, const device::SourceTensors& sources,
                         int64_t batch)
    : device_(device),
      sources_(sources),
      batch_(batch),
      copied_(device.make_event()),
      held_(static_cast<size_t>(batch), -1) {}

device::BufferPtr BatchInputs::buffer_for(const device::TensorInfo& input) {
    if (input.shape.empty() || input.shape[0] != batch_ || input.dtype != DType::f32) {
        throw Error(ErrorCode::bad_pack,
                    fmt::format("graph input '{}': found {}{}, wanted f32 with {} entries, one per "
                                "frame of a batch",
                                input.name, name_of(input.dtype), to_string(input.shape), batch_));
    }
    return device_.allocate(input, device::Location::device);
}

void BatchInputs::attach(const pack::GraphSpec& spec, const device::Graph& graph,
                         device::Session& session,
                         const std::map<std::string, device::BufferPtr>& upstream) {
    const auto driving = spec.bindings.find("driving_keypoints");
    for (const auto& input : graph.inputs()) {
        if (driving != spec.bindings.end() && input.name == driving->second) {
            if (driving_ == nullptr) {
                driving_ = buffer_for(input);
                keypoints_ = device_.allocate(input, device::Location::pinned);
            }
            session.bind(input.name, driving_);
        } else if (const auto found = upstream.find(input.name); found != upstream.end()) {
            session.bind(input.name, found->second);
        } else if (device::have_tensor(sources_, input.name)) {
            auto& buffer = inputs_[input.name];
            if (buffer == nullptr) buffer = buffer_for(input);
            session.bind(input.name, buffer);
        } else {
            throw Error(ErrorCode::bad_pack,
                        fmt::format("{}: found nothing for input '{}', wanted an output of the "
                                    "warp graph or an avatar tensor in every source frame",
                                    spec.model.file, input.name));
        }
    }
}

void BatchInputs::require_keypoints() const {
    if (driving_ != nullptr) return;
    throw Error(ErrorCode::bad_pack, "found no input for the driving keypoints, wanted one");
}

void BatchInputs::feed(std::span<const DrivingFrame> frames, device::Stream& stream) {
    copied_->synchronize();
    const auto target = keypoints_ ? keypoints_->host_f32() : std::span<float>{};
    const size_t count = target.size() / static_cast<size_t>(batch_);
    for (size_t i = 0; i < frames.size(); ++i) {
        const DrivingFrame& frame = frames[i];
        if (keypoints_) {
            device::require_keypoints(frame, count);
            std::ranges::copy(frame.keypoints, target.subspan(i * count).begin());
        }
        if (frame.source_frame == held_.at(i)) continue;
        const auto& tensors = device::tensors_of(sources_, frame.source_frame);
        for (const auto& [name, buffer] : inputs_) {
            device::Buffer& source = *tensors.at(name);
            const size_t entry = buffer->bytes() / static_cast<size_t>(batch_);
            device_.copy_range(source, 0, *buffer, i * entry, entry, stream);
        }
        held_[i] = frame.source_frame;
    }
    if (!keypoints_) return;
    device_.copy_range(*keypoints_, 0, *driving_, 0, frames.size() * count * sizeof(float), stream);
    device_.record(*copied_, stream);
}

}  // namespace newscaster::pipeline
