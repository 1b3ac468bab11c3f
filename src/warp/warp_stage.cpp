#include "warp/warp_stage.h"

#include <fmt/format.h>

#include "newscaster/error.h"

namespace newscaster::warp {

WarpStage::WarpStage(const pack::GraphSpec& spec, device::Device& device, device::Graph& graph,
                     const device::SourceTensors& sources)
    : session_(graph.make_session()), inputs_(device, *session_, sources) {
    const std::string& driving = spec.tensor("driving_keypoints");
    for (const auto& input : graph.inputs()) {
        if (input.name == driving) {
            inputs_.set_driving_keypoints(input);
        } else if (!inputs_.add_source(input.name)) {
            throw Error(ErrorCode::bad_pack,
                        fmt::format("warp graph: found no avatar tensor for input '{}', wanted one "
                                    "in every source frame",
                                    input.name));
        }
    }
    if (!inputs_.takes_keypoints()) {
        throw Error(
            ErrorCode::bad_pack,
            fmt::format("warp graph: found no input '{}', wanted the driving keypoints", driving));
    }
    for (const auto& output : graph.outputs()) output_names_.push_back(output.name);
}

void WarpStage::run(const DrivingFrame& frame, device::Stream& stream) {
    inputs_.feed(frame, stream);
    session_->run(stream);
}

std::map<std::string, device::BufferPtr> WarpStage::outputs() {
    std::map<std::string, device::BufferPtr> buffers;
    for (const auto& name : output_names_) buffers[name] = session_->buffer(name);
    return buffers;
}

}  // namespace newscaster::warp
