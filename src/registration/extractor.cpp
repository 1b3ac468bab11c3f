#include "registration/extractor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "newscaster/error.h"
#include "registration/crop_sampler.h"

namespace newscaster::registration {

namespace {

std::vector<float> values_of(const TensorMap& tensors, const std::string& name) {
    const auto values = tensors.find(name)->second.as<float>();
    return {values.begin(), values.end()};
}

// Pictures cannot be registered without these two outputs.
void require_words(const pack::Manifest& manifest) {
    const auto& bindings = manifest.graph(pack::role::kMotionExtractor).bindings;
    for (const char* word : {"motion", "canonical_keypoints"}) {
        if (bindings.contains(word)) continue;
        throw Error(ErrorCode::bad_pack,
                    fmt::format("pack '{}': graphs.motion_extractor has no binding '{}', wanted "
                                "one to make avatars of pictures",
                                manifest.name, word));
    }
}

}  // namespace

FaceExtractor::FaceExtractor(const pack::Pack& pack, device::Device& device)
    : device_(device), stream_(device.make_stream()) {
    for (const auto role : {pack::role::kAppearanceExtractor, pack::role::kMotionExtractor}) {
        if (pack.manifest().graphs.contains(role)) continue;
        throw Error(
            ErrorCode::bad_pack,
            fmt::format("pack '{}': has no {} graph, wanted one to make avatars of pictures",
                        pack.manifest().name, role));
    }
    require_words(pack.manifest());
    appearance_ = load(pack, pack::role::kAppearanceExtractor);
    motion_ = load(pack, pack::role::kMotionExtractor);
}

FaceExtractor::Network FaceExtractor::load(const pack::Pack& pack, std::string_view role) {
    Network network;
    network.spec = &pack.manifest().graph(role);
    network.graph = pack.load_graph(device_, role, device::Precision::f32, 1);
    network.session = network.graph->make_session();
    return network;
}

TensorMap FaceExtractor::run(const Network& network, const RgbImage& crop) {
    const std::string& input = network.spec->tensor("image");
    const Shape& shape = network.spec->inputs.at(input).shape;
    const Tensor image = to_network_image(crop, shape.at(2), shape.at(3));
    network.session->bind(input, device::upload(device_, *stream_, input, image));
    network.session->run(*stream_);
    TensorMap outputs;
    for (const auto& [name, spec] : network.spec->outputs) {
        if (spec.dtype != DType::f32) continue;
        const auto made = network.session->buffer(name);
        const auto host = device_.allocate(made->info(), device::Location::host);
        device_.copy(*made, *host, *stream_);
        stream_->synchronize();
        const auto values = host->host_f32();
        if (!std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); })) {
            throw Error(ErrorCode::runtime,
                        fmt::format("{}: output '{}' holds a value that is not finite",
                                    network.spec->model.file, name));
        }
        outputs.emplace(name, Tensor::of<float>(spec.shape, values));
    }
    return outputs;
}

TensorMap FaceExtractor::appearance(const RgbImage& crop) {
    return run(appearance_, crop);
}

FaceFeatures FaceExtractor::motion(const RgbImage& crop) {
    FaceFeatures features;
    const TensorMap motion = run(motion_, crop);
    features.motion = values_of(motion, motion_.spec->tensor("motion"));
    features.canonical_keypoints = values_of(motion, motion_.spec->tensor("canonical_keypoints"));
    return features;
}

}  // namespace newscaster::registration
