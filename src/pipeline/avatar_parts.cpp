#include "pipeline/avatar_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "motion/composer.h"
#include "newscaster/error.h"
#include "registration/crop_box.h"
#include "registration/crop_sampler.h"

namespace newscaster::pipeline {

namespace fs = std::filesystem;

namespace {

constexpr double kSmallFacePx = 64.0;

RgbImage pad_to_even(RgbImage image) {
    const int width = image.width + image.width % 2;
    const int height = image.height + image.height % 2;
    if (width == image.width && height == image.height) return image;
    RgbImage padded{width, height, {}};
    padded.pixels.reserve(static_cast<size_t>(width) * static_cast<size_t>(height) * 3);
    for (int y = 0; y < height; ++y) {
        const auto row_bytes = static_cast<ptrdiff_t>(image.width) * 3;
        const auto row = image.pixels.begin() + std::min(y, image.height - 1) * row_bytes;
        padded.pixels.insert(padded.pixels.end(), row, row + row_bytes);
        if (width != image.width) {
            padded.pixels.insert(padded.pixels.end(), row + row_bytes - 3, row + row_bytes);
        }
    }
    return padded;
}

template <size_t N>
Tensor eye_tensor(const std::array<double, N>& values, const pack::ConditionSpan& span,
                  std::string_view name) {
    if (span.size != static_cast<int64_t>(N)) {
        throw Error(ErrorCode::bad_pack,
                    fmt::format("condition {}: the pack has {} values, wanted {} to make avatars "
                                "of pictures",
                                name, span.size, N));
    }
    Tensor tensor(DType::f32, {1, span.size});
    std::transform(values.begin(), values.end(), tensor.as<float>().begin(),
                   [](double value) { return static_cast<float>(value); });
    return tensor;
}

void add_eyes(const Framing& framing, const pack::MotionSpec& motion, TensorMap& tensors) {
    if (const auto* span = motion.find(pack::ConditionKind::eye_open); span != nullptr) {
        tensors.emplace(avatar::kEyeOpen, eye_tensor(framing.eye_open, *span, avatar::kEyeOpen));
    }
    if (const auto* span = motion.find(pack::ConditionKind::eye_ball); span != nullptr) {
        tensors.emplace(avatar::kEyeBall, eye_tensor(framing.eye_ball, *span, avatar::kEyeBall));
    }
}

// Everything an avatar of one source frame may hold, by name.
TensorMap all_tensors(const pack::Pack& pack, registration::FaceFeatures features,
                      const RgbImage& crop, const Framing& framing) {
    const auto& manifest = pack.manifest();
    const bool drawn = !features.appearance.empty();
    TensorMap tensors = std::move(features.appearance);
    const Shape points{1, manifest.keypoints.count, 3};
    const motion::Composer composer(
        pack, {{.canonical_keypoints = features.canonical_keypoints, .motion = features.motion}});
    const auto put = [&](std::string_view name, const Shape& shape,
                         const std::vector<float>& values) {
        tensors.insert_or_assign(std::string(name), Tensor::of<float>(shape, values));
    };
    put(avatar::kCanonicalKeypoints, points, features.canonical_keypoints);
    put(avatar::kSourceMotion, {1, manifest.motion.dims}, features.motion);
    for (const auto role : {pack::role::kWarp, pack::role::kDecoder}) {
        const auto& bindings = manifest.graph(role).bindings;
        if (const auto name = bindings.find("source_keypoints"); name != bindings.end()) {
            put(name->second, points, composer.source_keypoints(0));
        }
        if (const auto name = bindings.find("source_image"); name != bindings.end() && drawn) {
            tensors.insert_or_assign(name->second, registration::to_planes(crop));
        }
    }
    add_eyes(framing, manifest.motion, tensors);
    return tensors;
}

// Keeps what the engine asks for.
TensorMap select_required(TensorMap tensors, const pack::Manifest& manifest, bool features) {
    TensorMap selected;
    for (const auto& [name, shape] : avatar::required_tensors(manifest, 1, 1)) {
        if (!features && !avatar::is_per_frame(name)) continue;
        const auto found = tensors.find(name);
        if (found == tensors.end() || found->second.shape() != shape) {
            throw Error(ErrorCode::bad_pack,
                        fmt::format("pack '{}': found no source for the renderer's input '{}' {}, "
                                    "wanted an output of appearance_extractor or a binding",
                                    manifest.name, name, to_string(shape)));
        }
        selected.emplace(name, std::move(found->second));
    }
    return selected;
}

}  // namespace

RgbImage make_canvas(RgbImage image, const std::string& name) {
    if (image.width < kMinCanvasPx || image.height < kMinCanvasPx) {
        throw Error(ErrorCode::bad_input,
                    fmt::format("{}: the picture is {}x{} pixels, at least {} a side are wanted",
                                name, image.width, image.height, kMinCanvasPx));
    }
    return pad_to_even(std::move(image));
}

media::PictureLimits limits_of(const AvatarSource& source) {
    if (source.max_size != 0 && source.max_size < kMinCanvasPx) {
        throw Error(ErrorCode::bad_input, fmt::format("largest size: found {}, wanted 0 or at "
                                                      "least {} pixels",
                                                      source.max_size, kMinCanvasPx));
    }
    return {.shrink_to = source.max_size};
}

media::Backdrop backdrop_of(const AvatarSource& source) {
    return source.background.empty() ? media::Backdrop() : media::Backdrop::of(source.background);
}

pack::FramingSpec choose_framing(const AvatarSource& source, const pack::Manifest& manifest) {
    if (source.detectors.empty()) {
        throw Error(ErrorCode::bad_input,
                    fmt::format("{}: found neither a crop box nor face detectors, wanted one of "
                                "them",
                                source.picture.string()));
    }
    if (!manifest.crop.framing) {
        throw Error(ErrorCode::bad_pack,
                    fmt::format("pack '{}': crop.framing is missing, so faces cannot be cut for "
                                "it; give the crop box",
                                manifest.name));
    }
    const auto choose = [](std::optional<double> wanted, double packs, double least, double most,
                           const char* name) {
        if (!wanted) return packs;
        if (*wanted >= least && *wanted <= most) return *wanted;
        throw Error(ErrorCode::bad_input,
                    fmt::format("{}: found {:g}, wanted {:g} to {:g}", name, *wanted, least, most));
    };
    pack::FramingSpec framing = *manifest.crop.framing;
    framing.scale = choose(source.crop_scale, framing.scale, 1.0, 10.0, "scale of the crop box");
    framing.shift_x =
        choose(source.crop_shift_x, framing.shift_x, -1.0, 1.0, "shift of the crop box");
    framing.shift_y =
        choose(source.crop_shift_y, framing.shift_y, -1.0, 1.0, "shift of the crop box");
    return framing;
}

std::optional<Framing> frame_landmarks(const registration::FaceLandmarks& landmarks,
                                       const pack::FramingSpec& spec, const RgbImage& picture) {
    Framing framing{.crop = registration::frame_face(landmarks, spec),
                    .eye_open = registration::eye_opening(landmarks)};
    framing.eye_ball = registration::iris_movement(landmarks, framing.crop);
    if (!registration::is_centred_on(framing.crop, picture.width, picture.height)) {
        return std::nullopt;
    }
    return framing;
}

void warn_if_small(double face_px, const std::string& name, const Log& log) {
    if (face_px >= kSmallFacePx) return;
    log(LogLevel::warning,
        "{}: the face is {:.0f} pixels wide, fewer than {:.0f}: the avatar will be blurred", name,
        face_px, kSmallFacePx);
}

Framing frame_given(const CropBox& crop, const pack::Manifest& manifest, const std::string& name,
                    const Log& log) {
    if (crop.size < static_cast<double>(manifest.crop.size_px) / 4.0) {
        log(LogLevel::warning,
            "{}: the crop box is {:.0f} pixels wide, the pack draws {}: the avatar will be "
            "blurred",
            name, crop.size, manifest.crop.size_px);
    }
    return {.crop = crop};
}

TensorMap make_tensors(const pack::Pack& pack, registration::FaceFeatures features,
                       const RgbImage& crop, const Framing& framing) {
    const bool drawn = !features.appearance.empty();
    return select_required(all_tensors(pack, std::move(features), crop, framing), pack.manifest(),
                           drawn);
}

avatar::AvatarDocument describe(const AvatarSource& source, const pack::Pack& pack, int width,
                                int height, std::vector<Affine> crop_to_canvas) {
    const fs::path folder = source.folder.lexically_normal();
    const fs::path last =
        folder.has_filename() ? folder.filename() : folder.parent_path().filename();
    avatar::AvatarDocument document;
    document.name = source.name.empty() ? last.string() : source.name;
    document.title = source.title.empty() ? document.name : source.title;
    document.license = source.license;
    document.pack_name = pack.manifest().name;
    document.avatar_key = pack.avatar_key();
    document.width = width;
    document.height = height;
    document.crop_to_canvas = std::move(crop_to_canvas);
    return document;
}

}  // namespace newscaster::pipeline
