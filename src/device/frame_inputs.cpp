#include "device/frame_inputs.h"

#include <fmt/format.h>

#include <algorithm>

#include "newscaster/error.h"

namespace newscaster::device {

FrameInputs::FrameInputs(Device& device, Session& session, const SourceTensors& sources)
    : device_(device), session_(session), sources_(sources) {}

void FrameInputs::set_driving_keypoints(const TensorInfo& input) {
    driving_host_ = device_.allocate(input, Location::pinned);
    driving_ = device_.allocate(input, Location::device);
    session_.bind(input.name, driving_);
}

bool FrameInputs::add_source(const std::string& input) {
    const bool everywhere =
        std::ranges::all_of(sources_, [&](const auto& source) { return source.contains(input); });
    if (everywhere) source_inputs_.push_back(input);
    return everywhere;
}

void FrameInputs::feed(const DrivingFrame& frame, Stream& stream) {
    bind_source(frame.source_frame);
    if (!takes_keypoints()) return;
    const auto keypoints = driving_host_->host_f32();
    if (frame.keypoints.size() != keypoints.size()) {
        throw Error(ErrorCode::runtime,
                    fmt::format("driving keypoints of frame {}: found {} values, wanted {}",
                                frame.index, frame.keypoints.size(), keypoints.size()));
    }
    std::ranges::copy(frame.keypoints, keypoints.begin());
    device_.copy(*driving_host_, *driving_, stream);
}

void FrameInputs::bind_source(int64_t source_frame) {
    if (source_frame == bound_source_) return;
    if (source_frame < 0 || source_frame >= static_cast<int64_t>(sources_.size())) {
        throw Error(ErrorCode::runtime,
                    fmt::format("source frame: found {}, wanted 0..{}", source_frame,
                                static_cast<int64_t>(sources_.size()) - 1));
    }
    const auto& source = sources_[static_cast<size_t>(source_frame)];
    for (const auto& name : source_inputs_) session_.bind(name, source.at(name));
    bound_source_ = source_frame;
}

}  // namespace newscaster::device
