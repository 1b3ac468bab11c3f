#include "device/frame_inputs.h"

#include <fmt/format.h>

#include <algorithm>

#include "newscaster/error.h"

namespace newscaster::device {

void require_keypoints(const DrivingFrame& frame, size_t values) {
    if (frame.keypoints.size() == values) return;
    throw Error(ErrorCode::runtime,
                fmt::format("driving keypoints of frame {}: found {} values, wanted {}",
                            frame.index, frame.keypoints.size(), values));
}

const SourceTensors::value_type& tensors_of(const SourceTensors& sources, int64_t source_frame) {
    if (source_frame < 0 || source_frame >= std::ssize(sources)) {
        throw Error(ErrorCode::runtime, fmt::format("source frame: found {}, wanted 0..{}",
                                                    source_frame, std::ssize(sources) - 1));
    }
    return sources[static_cast<size_t>(source_frame)];
}

bool have_tensor(const SourceTensors& sources, const std::string& name) {
    return std::ranges::all_of(sources, [&](const auto& source) { return source.contains(name); });
}

FrameInputs::FrameInputs(Device& device, Session& session, const SourceTensors& sources)
    : device_(device), session_(session), sources_(sources) {}

void FrameInputs::set_driving_keypoints(const TensorInfo& input) {
    driving_host_ = device_.allocate(input, Location::pinned);
    driving_ = device_.allocate(input, Location::device);
    session_.bind(input.name, driving_);
}

bool FrameInputs::add_source(const std::string& input) {
    const bool everywhere = have_tensor(sources_, input);
    if (everywhere) source_inputs_.push_back(input);
    return everywhere;
}

void FrameInputs::feed(const DrivingFrame& frame, Stream& stream) {
    bind_source(frame.source_frame);
    if (!takes_keypoints()) return;
    const auto keypoints = driving_host_->host_f32();
    require_keypoints(frame, keypoints.size());
    std::ranges::copy(frame.keypoints, keypoints.begin());
    device_.copy(*driving_host_, *driving_, stream);
}

void FrameInputs::bind_source(int64_t source_frame) {
    if (source_frame == bound_source_) return;
    const auto& source = tensors_of(sources_, source_frame);
    for (const auto& name : source_inputs_) session_.bind(name, source.at(name));
    bound_source_ = source_frame;
}

}  // namespace newscaster::device
