#include "decode/decode_stage.h"

#include <fmt/format.h>

#include <algorithm>

#include "newscaster/error.h"

namespace newscaster::decode {

namespace {

void require_image(const device::TensorInfo& image) {
    const auto& shape = image.shape;
    const bool fits = image.dtype == DType::f32 && shape.size() == 4 && shape[0] == 1 &&
                      shape[1] == 3 && shape[2] == shape[3];
    if (fits) return;
    throw Error(ErrorCode::bad_pack,
                fmt::format("decoder graph: output '{}': found {}{}, wanted f32[1,3,size,size]",
                            image.name, name_of(image.dtype), to_string(shape)));
}

}  // namespace

DecodeStage::DecodeStage(const pack::GraphSpec& spec, device::Device& device, device::Graph& graph,
                         const std::vector<std::map<std::string, device::BufferPtr>>& sources,
                         const std::map<std::string, device::BufferPtr>& upstream)
    : device_(device), sources_(sources), session_(graph.make_session()) {
    const auto driving = spec.bindings.find("driving_keypoints");  // optional here
    for (const auto& input : graph.inputs()) {
        if (driving != spec.bindings.end() && input.name == driving->second) {
            driving_host_ = device.allocate(input, device::Location::pinned);
            driving_ = device.allocate(input, device::Location::device);
            session_->bind(input.name, driving_);
            continue;
        }
        if (const auto found = upstream.find(input.name); found != upstream.end()) {
            session_->bind(input.name, found->second);
            continue;
        }
        for (const auto& source : sources) {
            if (source.contains(input.name)) continue;
            throw Error(ErrorCode::bad_pack,
                        fmt::format("decoder graph: found nothing for input '{}', wanted an output "
                                    "of the warp graph or an avatar tensor in every source frame",
                                    input.name));
        }
        source_inputs_.push_back(input.name);
    }
    image_ = session_->buffer(spec.tensor("image"));
    require_image(image_->info());
    image_host_ = image_->location() == device::Location::device
                      ? device.allocate(image_->info(), device::Location::pinned)
                      : image_;
}

void DecodeStage::bind_source(int64_t source_frame) {
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

std::span<const float> DecodeStage::run(const DrivingFrame& frame, device::Stream& stream) {
    bind_source(frame.source_frame);
    if (driving_) {
        const auto keypoints = driving_host_->host_f32();
        if (frame.keypoints.size() != keypoints.size()) {
            throw Error(ErrorCode::runtime,
                        fmt::format("driving keypoints of frame {}: found {} values, wanted {}",
                                    frame.index, frame.keypoints.size(), keypoints.size()));
        }
        std::ranges::copy(frame.keypoints, keypoints.begin());
        device_.copy(*driving_host_, *driving_, stream);
    }
    session_->run(stream);
    if (image_host_ != image_) device_.copy(*image_, *image_host_, stream);
    stream.synchronize();
    return image_host_->host_f32();
}

}  // namespace newscaster::decode
