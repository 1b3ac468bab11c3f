#include "registration/picture_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "newscaster/error.h"
#include "registration/crop_box.h"
#include "registration/crop_sampler.h"

namespace newscaster::registration {

namespace {

constexpr float kWhite = 255.0F;

[[noreturn]] void fail(const std::filesystem::path& file, const std::string& what) {
    throw Error(ErrorCode::bad_pack, fmt::format("{}: {}", file.string(), what));
}

}  // namespace

PictureNetwork::PictureNetwork(device::Device& device, const std::filesystem::path& file,
                               const std::vector<size_t>& output_sizes)
    : device_(device),
      stream_(device.make_stream()),
      graph_(device.load(file, {}, {})),
      session_(graph_->make_session()) {
    const auto& inputs = graph_->inputs();
    const Shape shape = inputs.size() == 1 ? inputs[0].shape : Shape{};
    if (shape.size() != 4 || shape[0] != 1 || shape[1] != shape[2] || shape[3] != 3 ||
        shape[1] < 1 || inputs[0].dtype != DType::f32) {
        fail(file, fmt::format("found {} inputs, the first {}, wanted one of f32 [1,side,side,3]",
                               inputs.size(), to_string(shape)));
    }
    side_ = static_cast<int>(shape[1]);
    input_ = device.allocate(inputs[0], device::Location::host);
    session_->bind(inputs[0].name, input_);
    for (const size_t size : output_sizes) {
        const auto& outputs = graph_->outputs();
        const auto found = std::ranges::find_if(outputs, [&](const auto& info) {
            return info.dtype == DType::f32 &&
                   std::ranges::all_of(info.shape, [](int64_t extent) { return extent > 0; }) &&
                   element_count(info.shape) == static_cast<int64_t>(size);
        });
        if (found == outputs.end()) fail(file, fmt::format("wanted an output of {} values", size));
        outputs_.push_back(session_->buffer(found->name));
    }
}

std::vector<std::span<const float>> PictureNetwork::run(const RgbImage& picture,
                                                        const CropBox& square, float low) {
    const RgbImage crop = cut_crop(picture, crop_to_picture(square, side_), side_);
    std::ranges::transform(crop.pixels, input_->host_f32().begin(), [&](uint8_t value) {
        return low + (1.0F - low) * static_cast<float>(value) / kWhite;
    });
    session_->run(*stream_);
    stream_->synchronize();
    std::vector<std::span<const float>> values;
    values.reserve(outputs_.size());
    for (const auto& output : outputs_) values.emplace_back(output->host_f32());
    return values;
}

}  // namespace newscaster::registration
