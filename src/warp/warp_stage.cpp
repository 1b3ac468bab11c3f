#include "warp/warp_stage.h"

#include <fmt/format.h>

#include <algorithm>

#include "newscaster/error.h"

namespace newscaster::warp {

WarpStage::WarpStage(const pack::GraphSpec& spec, device::Device& device, device::Graph& graph,
                     const SourceTensors& sources)
    : device_(device), sources_(sources), session_(graph.make_session()) {
    const std::string& driving = spec.tensor("driving_keypoints");
    for (const auto& input : graph.inputs()) {
        if (input.name == driving) {
            driving_host_ = device.allocate(input, device::Location::pinned);
            driving_ = device.allocate(input, device::Location::device);
            session_->bind(driving, driving_);
            continue;
        }
        for (const auto& source : sources) {
            if (source.contains(input.name)) continue;
            throw Error(ErrorCode::bad_pack,
                        fmt::format("warp graph: found no avatar tensor for input '{}', wanted one "
                                    "in every source frame",
                                    input.name));
        }
        source_inputs_.push_back(input.name);
    }
    if (!driving_) {
        throw Error(
            ErrorCode::bad_pack,
            fmt::format("warp graph: found no input '{}', wanted the driving keypoints", driving));
    }
    for (const auto& output : graph.outputs()) output_names_.push_back(output.name);
}

void WarpStage::bind_source(int64_t source_frame) {
    if (source_frame == bound_source_) return;
    if (source_frame < 0 || source_frame >= static_cast<int64_t>(sources_.size())) {
        throw Error(ErrorCode::runtime,
                    fmt::format("source frame: found {}, wanted 0..{}", source_frame,
                                static_cast<int64_t>(sources_.size()) - 1));
    }
    const auto& source = sources_[static_cast<size_t>(source_frame)];
    for (const auto& name : source_inputs_) session_->bind(name, source.at(name));
    bound_source_ = source_frame;
}

void WarpStage::run(const DrivingFrame& frame, device::Stream& stream) {
    bind_source(frame.source_frame);
    const auto keypoints = driving_host_->host_f32();
    if (frame.keypoints.size() != keypoints.size()) {
        throw Error(ErrorCode::runtime,
                    fmt::format("driving keypoints of frame {}: found {} values, wanted {}",
                                frame.index, frame.keypoints.size(), keypoints.size()));
    }
    std::ranges::copy(frame.keypoints, keypoints.begin());
    device_.copy(*driving_host_, *driving_, stream);
    session_->run(stream);
}

std::map<std::string, device::BufferPtr> WarpStage::outputs() {
    std::map<std::string, device::BufferPtr> buffers;
    for (const auto& name : output_names_) buffers[name] = session_->buffer(name);
    return buffers;
}

}  // namespace newscaster::warp
