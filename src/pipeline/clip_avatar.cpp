// Registration of a clip: one pass finds the face, a second cuts and reads it. Never more than a
// few pictures are in memory; the cached tensors are, and bound the length.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "composite/compositor.h"
#include "media/clip_source.h"
#include "newscaster/error.h"
#include "pipeline/avatar_parts.h"
#include "registration/crop_box.h"
#include "registration/crop_sampler.h"

namespace newscaster::pipeline {

namespace {

// All cached tensors of a loaded avatar, in f32.
constexpr uint64_t kMaxTensorBytes = 2ULL << 30U;

int64_t most_frames(const pack::Manifest& manifest) {
    uint64_t bytes = 0;
    for (const auto& [name, shape] : avatar::required_tensors(manifest, 1)) {
        uint64_t count = sizeof(float);
        for (const int64_t extent : shape) count *= static_cast<uint64_t>(extent);
        bytes += count;
    }
    return static_cast<int64_t>(std::max<uint64_t>(kMaxTensorBytes / bytes, 1));
}

// Follows one face from frame to frame.
class FaceTrack {
  public:
    FaceTrack(const AvatarSource& source, device::Device& device)
        : source_(source), finder_(device, source.detectors) {}

    // Throws Error(bad_input) naming the time when there is no face.
    const registration::FaceLandmarks& next(const RgbImage& picture, double time_s) {
        std::optional<registration::FaceLandmarks> found;
        if (last_) found = finder_.follow(picture, *last_);
        if (!found) found = search(picture, time_s);
        last_ = std::move(*found);
        return *last_;
    }

  private:
    registration::FaceLandmarks search(const RgbImage& picture, double time_s) {
        const std::string name = fmt::format("{}, {:.2f} s", source_.picture.string(), time_s);
        auto faces = finder_.find(picture);
        if (!last_ || faces.empty()) {
            return registration::choose_face(faces, source_.face, picture, name).landmarks;
        }
        const auto distance = [&](const registration::FoundFace& face) {
            const auto& was = last_->mesh.front();
            const auto& is = face.landmarks.mesh.front();
            return (is.x - was.x) * (is.x - was.x) + (is.y - was.y) * (is.y - was.y);
        };
        return std::ranges::min_element(faces, {}, distance)->landmarks;
    }

    const AvatarSource& source_;
    registration::FaceFinder finder_;
    std::optional<registration::FaceLandmarks> last_;
};

// Mean over `frames` boxes around each.
void smooth_boxes(std::vector<Framing>& framings, int frames) {
    const std::vector<Framing> raw = framings;
    const auto half = static_cast<size_t>(frames / 2);
    for (size_t i = 0; i < raw.size(); ++i) {
        // The same number on both sides, so that a steady movement keeps its place.
        const size_t side = std::min({half, i, raw.size() - 1 - i});
        double x = 0.0;
        double y = 0.0;
        double size = 0.0;
        double angle = 0.0;
        for (size_t k = i - side; k <= i + side; ++k) {
            x += raw[k].crop.x + raw[k].crop.size / 2.0;
            y += raw[k].crop.y + raw[k].crop.size / 2.0;
            size += raw[k].crop.size;
            angle += raw[k].crop.angle_deg;
        }
        const auto count = static_cast<double>(2 * side + 1);
        size /= count;
        framings[i].crop = {.x = x / count - size / 2.0,
                            .y = y / count - size / 2.0,
                            .size = size,
                            .angle_deg = angle / count};
    }
}

std::vector<Framing> frame_clip(const AvatarSource& source, const pack::Manifest& manifest,
                                device::Device& device, const Log& log) {
    const std::string name = source.picture.string();
    const double fps = manifest.frame_rate.to_double();
    const int64_t most = most_frames(manifest);
    std::optional<FaceTrack> track;
    if (!source.crop) {
        require_framing(source, manifest);
        track.emplace(source, device);
    }
    const auto clip = media::ClipSource::open(source.picture, manifest.frame_rate);
    std::vector<Framing> framings;
    double least_px = 1e9;
    while (const auto picture = clip->read()) {
        if (std::ssize(framings) == most) {
            log(LogLevel::warning, "{}: is longer than {:.1f} s; only they are used, as a loop",
                name, static_cast<double>(most) / fps);
            break;
        }
        if (!track) {
            if (framings.empty()) {
                registration::check_crop_box(*source.crop, picture->width, picture->height);
                framings.push_back(frame_given(*source.crop, manifest, name, log));
            } else {
                framings.push_back(framings.back());
            }
            continue;
        }
        const double time_s = static_cast<double>(framings.size()) / fps;
        const auto& landmarks = track->next(*picture, time_s);
        least_px = std::min(least_px, registration::face_size_px(landmarks));
        framings.push_back(frame_landmarks(landmarks, manifest, *picture,
                                           fmt::format("{}, {:.2f} s", name, time_s)));
    }
    if (track) warn_if_small(least_px, name, log);
    smooth_boxes(framings, source.smooth_source);
    return framings;
}

// Entries of every source frame behind each other; large ones as half floats.
class TensorStack {
  public:
    explicit TensorStack(int64_t frames) : frames_(frames) {}

    void put(int64_t frame, const TensorMap& tensors) {
        for (const auto& [name, tensor] : tensors) {
            constexpr int64_t kLarge = 4096;
            const bool halve = tensor.dtype() == DType::f32 && tensor.size() >= kLarge;
            auto found = stack_.find(name);
            if (found == stack_.end()) {
                Shape shape = tensor.shape();
                shape.at(0) = frames_;
                found =
                    stack_.emplace(name, Tensor(halve ? DType::f16 : tensor.dtype(), shape)).first;
            }
            const size_t entry = found->second.bytes() / static_cast<size_t>(frames_);
            std::byte* target = found->second.data() + static_cast<size_t>(frame) * entry;
            if (!halve) {
                std::memcpy(target, tensor.data(), entry);
                continue;
            }
            for (const float value : tensor.as<float>()) {
                const uint16_t half = float_to_half(value);
                std::memcpy(target, &half, sizeof(half));
                target += sizeof(half);
            }
        }
    }

    [[nodiscard]] const TensorMap& tensors() const { return stack_; }

  private:
    int64_t frames_;
    TensorMap stack_;
};

void check_smoothing(int frames) {
    if (frames >= 1 && frames <= 101 && frames % 2 == 1) return;
    throw Error(ErrorCode::bad_input,
                fmt::format("smoothing of the source: found {} frames, wanted an odd number from 1 "
                            "to 101",
                            frames));
}

}  // namespace

void write_clip_avatar(const AvatarSource& source, const pack::Pack& pack, device::Device& device,
                       const Log& log) {
    check_smoothing(source.smooth_source);
    const auto& manifest = pack.manifest();
    const auto crop_size = static_cast<int>(manifest.crop.size_px);
    std::vector<Framing> framings = frame_clip(source, manifest, device, log);
    avatar::ClipAvatarWriter writer(source.folder, source.replace);
    registration::FaceExtractor extractor(pack, device);
    TensorStack stack(std::ssize(framings));
    std::vector<Affine> crop_to_canvas;
    const auto clip = media::ClipSource::open(source.picture, manifest.frame_rate);
    int width = 0;
    int height = 0;
    for (Framing& framing : framings) {
        if (source.eye_open) framing.eye_open = *source.eye_open;
        if (source.eye_ball) framing.eye_ball = *source.eye_ball;
        auto picture = clip->read();
        if (!picture) throw Error(ErrorCode::io, source.picture.string() + ": changed while read");
        const RgbImage canvas = make_canvas(std::move(*picture), source.picture.string());
        width = canvas.width;
        height = canvas.height;
        const Affine map = registration::crop_to_picture(framing.crop, crop_size);
        const RgbImage crop = registration::cut_crop(canvas, map, crop_size);
        stack.put(std::ssize(crop_to_canvas),
                  make_tensors(pack, extractor.extract(crop), crop, framing));
        crop_to_canvas.push_back(map);
        writer.add_canvas(composite::rgb_to_nv12(canvas));
    }
    log(LogLevel::info, "{}: {} source frames of {}x{}", source.picture.string(), framings.size(),
        width, height);
    writer.commit(describe(source, pack, width, height, std::move(crop_to_canvas)),
                  stack.tensors());
}

}  // namespace newscaster::pipeline
