#include "pipeline/loaded_avatar.h"

#include <fmt/format.h>

#include <algorithm>
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

std::vector<std::vector<float>> optional_rows(const avatar::Avatar& avatar, std::string_view name) {
    std::vector<std::vector<float>> rows;
    const auto found = avatar.tensors.find(name);
    if (found == avatar.tensors.end()) return rows;
    for (int64_t i = 0; i < found->second.dim(0); ++i) {
        const auto row = found->second.row(i);
        rows.emplace_back(row.begin(), row.end());
    }
    return rows;
}

// The pack's box filter over the motion and the keypoints of consecutive source frames.
void smooth_sources(std::vector<motion::SourcePose>& poses, int64_t frames) {
    const auto smooth = [&](std::vector<float> motion::SourcePose::*member) {
        std::vector<std::vector<float>> raw;
        raw.reserve(poses.size());
        for (const auto& pose : poses) raw.push_back(pose.*member);
        const auto half = static_cast<size_t>(frames / 2);
        for (size_t i = 0; i < raw.size(); ++i) {
            const size_t first = i - std::min(i, half);
            const size_t last = std::min(i + half, raw.size() - 1);
            for (size_t dim = 0; dim < raw[i].size(); ++dim) {
                double sum = 0.0;
                for (size_t k = first; k <= last; ++k) sum += raw[k][dim];
                (poses[i].*member)[dim] =
                    static_cast<float>(sum / static_cast<double>(last - first + 1));
            }
        }
    };
    smooth(&motion::SourcePose::motion);
    smooth(&motion::SourcePose::canonical_keypoints);
}

// Smoothing moves the source keypoints that the avatar cached: replaces them.
void replace_source_keypoints(avatar::Avatar& avatar, const pack::Manifest& manifest,
                              const motion::Composer& composer) {
    for (const auto role : {pack::role::kWarp, pack::role::kDecoder}) {
        const auto& bindings = manifest.graph(role).bindings;
        const auto bound = bindings.find("source_keypoints");
        if (bound == bindings.end()) continue;
        const auto found = avatar.tensors.find(bound->second);
        if (found == avatar.tensors.end()) continue;
        for (int64_t entry = 0; entry < avatar.feature_entries(); ++entry) {
            std::ranges::copy(composer.source_keypoints(avatar.frame_of_entry(entry)),
                              found->second.row(entry).begin());
        }
    }
}

std::string mebibytes(uint64_t bytes) {
    return fmt::format("{} MiB", bytes >> 20U);
}

bool is_read(const Engine::Impl& engine, const std::string& tensor) {
    return engine.manifest().graph(pack::role::kWarp).inputs.contains(tensor) ||
           engine.manifest().graph(pack::role::kDecoder).inputs.contains(tensor);
}

// Where the avatar's tensors stay.
device::Location place_of_sources(const avatar::Avatar& avatar, const Engine::Impl& engine) {
    if (!engine.info.batched) return device::Location::device;  // bound to the graphs directly
    size_t bytes = 0;
    for (const auto& [name, tensor] : avatar.tensors) {
        if (is_read(engine, name)) bytes += tensor.bytes();
    }
    const uint64_t free_bytes = engine.device->info().memory_bytes;
    const bool fits = free_bytes == 0 || bytes < free_bytes / 2;
    const bool streamed = engine.vram_mode == VramMode::streamed ||
                          (engine.vram_mode == VramMode::automatic && !fits);
    engine.log(LogLevel::info, "avatar: {} of tensors {}, {} free on the device", mebibytes(bytes),
               streamed ? "streamed" : "resident", mebibytes(free_bytes));
    return streamed ? device::Location::pinned : device::Location::device;
}

// Avatar tensors that the renderer's graphs read, per source frame.
device::SourceTensors upload_sources(const avatar::Avatar& avatar, const Engine::Impl& engine) {
    const auto stream = engine.device->make_stream();
    const auto place = place_of_sources(avatar, engine);
    device::SourceTensors entries(static_cast<size_t>(avatar.feature_entries()));
    for (const auto& [name, tensor] : avatar.tensors) {
        if (!is_read(engine, name)) continue;
        for (size_t i = 0; i < entries.size(); ++i) {
            entries[i][name] = device::upload(*engine.device, *stream, name,
                                              slice(tensor, static_cast<int64_t>(i)), place);
        }
    }
    stream->synchronize();
    device::SourceTensors sources;  // frames that share an entry share its buffers
    for (const int64_t entry : avatar.features_of) {
        sources.push_back(entries[static_cast<size_t>(entry)]);
    }
    return sources;
}

}  // namespace

LoadedAvatar::LoadedAvatar(std::shared_ptr<const Engine::Impl> engine,
                           const std::filesystem::path& folder)
    : engine_(std::move(engine)) {
    const auto& manifest = engine_->manifest();
    avatar::Avatar avatar = avatar::load_avatar(folder, manifest, engine_->pack.avatar_key());
    name_ = avatar.name;
    width_ = avatar.width;
    height_ = avatar.height;

    add_plans(avatar, {.inset_px = avatar.mask.inset_px,
                       .feather_px = avatar.mask.feather_px,
                       .linear = avatar.mask.linear});
    std::vector<motion::SourcePose> poses;
    for (int64_t i = 0; i < avatar.source_frames(); ++i) {
        poses.push_back({.canonical_keypoints = row_of(avatar, "kp_canonical", i),
                         .motion = row_of(avatar, "source_motion", i)});
    }
    const bool smoothed = manifest.motion.source_smoothing_frames > 1 && poses.size() > 1;
    if (smoothed) smooth_sources(poses, manifest.motion.source_smoothing_frames);
    composer_ = std::make_unique<motion::Composer>(engine_->pack, std::move(poses));
    if (smoothed && manifest.motion.composition) {
        replace_source_keypoints(avatar, manifest, *composer_);
    }
    eye_open_ = optional_rows(avatar, avatar::kEyeOpen);
    eye_ball_ = optional_rows(avatar, avatar::kEyeBall);
    sources_ = upload_sources(avatar, *engine_);
    engine_->log(LogLevel::info, "avatar: {}, {}x{}, {} source frame(s)", name_, width_, height_,
                 source_frames());
}

void LoadedAvatar::add_plans(const avatar::Avatar& avatar, const composite::SoftMask& mask) {
    if (avatar.nv12) {
        const int crop_size = static_cast<int>(engine_->manifest().crop.size_px);
        clip_ = std::make_unique<ClipPlans>(avatar, crop_size, mask);
        return;
    }
    RgbImage canvas;
    for (size_t i = 0; i < avatar.crop_to_canvas.size(); ++i) {
        if (i < avatar.canvas_files.size()) {
            canvas = media::read_image(avatar.canvas_files[i]);
            if (canvas.width != width_ || canvas.height != height_) {
                throw Error(ErrorCode::bad_pack,
                            fmt::format("{}: picture is {}x{}, avatar.json wants {}x{}",
                                        avatar.canvas_files[i].string(), canvas.width,
                                        canvas.height, width_, height_));
            }
        }
        composite::SoftMask seen = mask;
        seen.opacity = avatar.opacity[i];
        add_plan(canvas, avatar.crop_to_canvas[i], seen);
    }
}

void LoadedAvatar::add_plan(const RgbImage& canvas, const Affine& crop_to_canvas,
                            const composite::SoftMask& mask) {
    const int crop_size = static_cast<int>(engine_->manifest().crop.size_px);
    plans_.push_back(
        std::make_shared<composite::PastePlan>(canvas, crop_to_canvas, crop_size, mask));
    if (!engine_->info.batched) return;
    auto paster = engine_->device->make_roi_paster(
        composite::make_roi_tables(canvas, crop_to_canvas, crop_size, mask));
    if (paster != nullptr) pasters_.push_back(std::move(paster));
}

motion::AvatarConditions LoadedAvatar::conditions() const {
    return {.eye_open = eye_open_,
            .eye_ball = eye_ball_,
            .source_keypoints = composer_->sources().front().canonical_keypoints,
            .source_of = [count = source_frames()](int64_t frame) {
                return avatar::mirror_loop(frame, count);
            }};
}

double LoadedAvatar::scale() const {
    const auto* span = engine_->manifest().motion.find(pack::SpanKind::scale);
    if (span == nullptr) return 1.0;
    const auto& motion = composer_->sources().front().motion;
    return motion[static_cast<size_t>(span->offset)] + span->stored_offset;
}

const pack::Manifest& manifest_of(const Avatar& avatar) {
    const auto* loaded = dynamic_cast<const LoadedAvatar*>(&avatar);
    if (loaded == nullptr) {
        throw Error(ErrorCode::bad_input, "the avatar was not loaded by an engine");
    }
    return loaded->engine()->manifest();
}

}  // namespace newscaster::pipeline
