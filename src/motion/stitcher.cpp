#include "motion/stitcher.h"

#include <fmt/format.h>

#include <algorithm>

#include "newscaster/error.h"

namespace newscaster::motion {

namespace {

const device::TensorInfo& tensor_of(const std::vector<device::TensorInfo>& tensors,
                                    const std::string& name) {
    const auto found = std::ranges::find(tensors, name, &device::TensorInfo::name);
    if (found != tensors.end()) return *found;
    throw Error(ErrorCode::bad_pack, fmt::format("stitch graph: tensor '{}' is missing", name));
}

}  // namespace

Stitcher::Stitcher(const pack::GraphSpec& spec, device::Device& device, device::Graph& graph)
    : device_(device), stream_(device.make_stream()), session_(graph.make_session()) {
    source_ = open_port(tensor_of(graph.inputs(), spec.tensor("source_keypoints")));
    driving_ = open_port(tensor_of(graph.inputs(), spec.tensor("driving_keypoints")));
    stitched_ = open_port(tensor_of(graph.outputs(), spec.tensor("stitched_keypoints")));
    batch_ = static_cast<size_t>(std::max<int64_t>(source_.host->info().shape.at(0), 1));
    session_->prepare();
}

Stitcher::Port Stitcher::open_port(const device::TensorInfo& info) {
    Port port{.host = device_.allocate(info, device::Location::pinned),
              .device = device_.allocate(info, device::Location::device)};
    session_->bind(info.name, port.device);
    return port;
}

std::span<float> Stitcher::entry(Port& port, size_t index, size_t values) {
    const auto all = port.host->host_f32();
    if (all.size() != batch_ * values) {
        throw Error(ErrorCode::runtime, fmt::format("stitch keypoints: found {} values, wanted {}",
                                                    values, all.size() / batch_));
    }
    return all.subspan(index * values, values);
}

void Stitcher::stitch(std::span<const Frame> frames) {
    for (size_t first = 0; first < frames.size(); first += batch_) {
        stitch_batch(frames.subspan(first, std::min(batch_, frames.size() - first)));
    }
}

void Stitcher::stitch_batch(std::span<const Frame> frames) {
    for (size_t i = 0; i < frames.size(); ++i) {
        const Frame& frame = frames[i];
        std::ranges::copy(frame.source, entry(source_, i, frame.source.size()).begin());
        std::ranges::copy(frame.driving, entry(driving_, i, frame.driving.size()).begin());
    }
    device_.copy(*source_.host, *source_.device, *stream_);
    device_.copy(*driving_.host, *driving_.device, *stream_);
    session_->run(*stream_);
    device_.copy(*stitched_.device, *stitched_.host, *stream_);
    stream_->synchronize();
    for (size_t i = 0; i < frames.size(); ++i) {
        std::ranges::copy(entry(stitched_, i, frames[i].driving.size()), frames[i].driving.begin());
    }
}

}  // namespace newscaster::motion
