#include "pipeline/loaded_avatar.h"

#include <fmt/format.h>

#include <utility>

#include "avatar/avatar.h"
#include "media/image.h"

namespace newscaster::pipeline {

namespace {

// Entry `index` along the first axis, as a tensor of batch 1.
Tensor slice(const Tensor& tensor, int64_t index) {
    Shape shape = tensor.shape();
    shape.at(0) = 1;
    return Tensor::of<float>(shape, tensor.row(index));
}

std::vector<float> row_of(const avatar::Avatar& avatar, const char* name, int64_t index) {
    const auto found = avatar.tensors.find(name);
    if (found == avatar.tensors.end()) {
        throw Error(ErrorCode::bad_pack,
                    fmt::format("{}: tensor \"{}\" is missing", avatar.folder.string(), name));
    }
    const auto row = found->second.row(index);
    return {row.begin(), row.end()};
}

// Avatar tensors that the renderer's graphs read, per source frame.
warp::SourceTensors upload_sources(const avatar::Avatar& avatar, const Engine::Impl& engine) {
    const auto& warp_inputs = engine.manifest().graph(pack::role::kWarp).inputs;
    const auto& decoder_inputs = engine.manifest().graph(pack::role::kDecoder).inputs;
    const auto stream = engine.device->make_stream();
    warp::SourceTensors sources(static_cast<size_t>(avatar.source_frames()));
    for (const auto& [name, tensor] : avatar.tensors) {
        if (!warp_inputs.contains(name) && !decoder_inputs.contains(name)) continue;
        for (size_t i = 0; i < sources.size(); ++i) {
            sources[i][name] = device::upload(*engine.device, *stream, name,
                                              slice(tensor, static_cast<int64_t>(i)));
        }
    }
    stream->synchronize();
    return sources;
}

}  // namespace

LoadedAvatar::LoadedAvatar(std::shared_ptr<const Engine::Impl> engine,
                           const std::filesystem::path& folder)
    : engine_(std::move(engine)) {
    const auto& manifest = engine_->manifest();
    const avatar::Avatar avatar = avatar::load_avatar(folder, manifest, engine_->pack.avatar_key());
    name_ = avatar.name;
    width_ = avatar.width;
    height_ = avatar.height;

    std::vector<motion::SourcePose> poses;
    RgbImage canvas;
    for (int64_t i = 0; i < avatar.source_frames(); ++i) {
        const auto index = static_cast<size_t>(i);
        if (index < avatar.canvas_files.size()) {
            canvas = media::read_image(avatar.canvas_files[index]);
            if (canvas.width != width_ || canvas.height != height_) {
                throw Error(ErrorCode::bad_pack,
                            fmt::format("{}: picture is {}x{}, avatar.json wants {}x{}",
                                        avatar.canvas_files[index].string(), canvas.width,
                                        canvas.height, width_, height_));
            }
        }
        plans_.emplace_back(canvas, avatar.crop_to_canvas[index],
                            static_cast<int>(manifest.crop.size_px),
                            composite::SoftMask{.inset_px = avatar.mask.inset_px,
                                                .feather_px = avatar.mask.feather_px,
                                                .linear = avatar.mask.linear});
        poses.push_back({.canonical_keypoints = row_of(avatar, "kp_canonical", i),
                         .motion = row_of(avatar, "source_motion", i)});
    }
    composer_ = std::make_unique<motion::Composer>(engine_->pack, std::move(poses));
    sources_ = upload_sources(avatar, *engine_);
    engine_->log(LogLevel::info, "avatar: {}, {}x{}, {} source frame(s)", name_, width_, height_,
                 source_frames());
}

const pack::Manifest& manifest_of(const Avatar& avatar) {
    const auto* loaded = dynamic_cast<const LoadedAvatar*>(&avatar);
    if (loaded == nullptr) {
        throw Error(ErrorCode::bad_input, "the avatar was not loaded by an engine");
    }
    return loaded->engine()->manifest();
}

}  // namespace newscaster::pipeline
