#include "decode/decode_stage.h"

#include <fmt/format.h>

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
                         const device::SourceTensors& sources,
                         const std::map<std::string, device::BufferPtr>& upstream)
    : device_(device), session_(graph.make_session()), inputs_(device, *session_, sources) {
    const auto driving = spec.bindings.find("driving_keypoints");  // optional here
    for (const auto& input : graph.inputs()) {
        if (driving != spec.bindings.end() && input.name == driving->second) {
            inputs_.set_driving_keypoints(input);
        } else if (const auto found = upstream.find(input.name); found != upstream.end()) {
            session_->bind(input.name, found->second);
        } else if (!inputs_.add_source(input.name)) {
            throw Error(ErrorCode::bad_pack,
                        fmt::format("decoder graph: found nothing for input '{}', wanted an output "
                                    "of the warp graph or an avatar tensor in every source frame",
                                    input.name));
        }
    }
    image_ = session_->buffer(spec.tensor("image"));
    require_image(image_->info());
    image_host_ = image_->location() == device::Location::device
                      ? device.allocate(image_->info(), device::Location::pinned)
                      : image_;
}

std::span<const float> DecodeStage::run(const DrivingFrame& frame, device::Stream& stream) {
    inputs_.feed(frame, stream);
    session_->run(stream);
    if (image_host_ != image_) device_.copy(*image_, *image_host_, stream);
    stream.synchronize();
    return image_host_->host_f32();
}

}  // namespace newscaster::decode
