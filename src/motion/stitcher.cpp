#include "motion/stitcher.h"

#include <fmt/format.h>

#include <algorithm>

#include "newscaster/error.h"

namespace newscaster::motion {

Stitcher::Stitcher(const pack::GraphSpec& spec, device::Device& device, device::Graph& graph)
    : device_(device), stream_(device.make_stream()), session_(graph.make_session()) {
    const auto input = [&](const char* word) {
        const std::string& name = spec.tensor(word);
        return open_port(name, spec.inputs.at(name));
    };
    source_ = input("source_keypoints");
    driving_ = input("driving_keypoints");
    const std::string& name = spec.tensor("stitched_keypoints");
    stitched_ = open_port(name, spec.outputs.at(name));
}

Stitcher::Port Stitcher::open_port(const std::string& name, const pack::TensorSpec& spec) {
    const device::TensorInfo info{name, spec.dtype, spec.shape};
    Port port{.host = device_.allocate(info, device::Location::pinned),
              .device = device_.allocate(info, device::Location::device)};
    session_->bind(name, port.device);
    return port;
}

void Stitcher::upload(Port& port, const std::vector<float>& values) {
    const auto target = port.host->host_f32();
    if (target.size() != values.size()) {
        throw Error(ErrorCode::runtime, fmt::format("stitch keypoints: found {} values, wanted {}",
                                                    values.size(), target.size()));
    }
    std::copy(values.begin(), values.end(), target.begin());
    device_.copy(*port.host, *port.device, *stream_);
}

std::vector<float> Stitcher::stitched(const std::vector<float>& source,
                                      const std::vector<float>& driving) {
    upload(source_, source);
    upload(driving_, driving);
    session_->run(*stream_);
    device_.copy(*stitched_.device, *stitched_.host, *stream_);
    stream_->synchronize();
    const auto result = stitched_.host->host_f32();
    return {result.begin(), result.end()};
}

}  // namespace newscaster::motion
