#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "avatar/avatar.h"
#include "media/image.h"
#include "motion/composer.h"
#include "newscaster/registration.h"
#include "pipeline/engine_impl.h"
#include "registration/crop_box.h"
#include "registration/crop_sampler.h"
#include "registration/extractor.h"
#include "registration/face_finder.h"

namespace newscaster {

namespace fs = std::filesystem;

namespace {

constexpr int kMinCanvasPx = 16;
constexpr double kSmallFacePx = 64.0;

// Video frames have even sides: the last column or row is repeated where the picture's are odd, so
// nothing of it is lost and nothing is stretched.
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

RgbImage read_source(const AvatarSource& source) {
    RgbImage image = media::read_image(source.picture);
    if (image.width < kMinCanvasPx || image.height < kMinCanvasPx) {
        throw Error(ErrorCode::bad_input,
                    fmt::format("{}: the picture is {}x{} pixels, at least {} a side are wanted",
                                source.picture.string(), image.width, image.height, kMinCanvasPx));
    }
    if (source.crop) registration::check_crop_box(*source.crop, image.width, image.height);
    return pad_to_even(std::move(image));
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

void check_eyes(const AvatarSource& source) {
    const auto check = [](const char* name, std::span<const double> values) {
        for (const double value : values) {
            if (std::abs(value) <= 1e3) continue;
            throw Error(ErrorCode::bad_input,
                        fmt::format("{}: found {:g}, wanted -1000 to 1000", name, value));
        }
    };
    if (source.eye_open) check("eye opening", *source.eye_open);
    if (source.eye_ball) check("iris movement", *source.eye_ball);
}

// Where the face is and what its eyes do.
struct Framing {
    CropBox crop;
    std::array<double, 2> eye_open{0.8, 0.8};  // open, looking ahead, unless measured
    std::array<double, 6> eye_ball{};
};

Framing find_framing(const AvatarSource& source, const RgbImage& picture,
                     const pack::Manifest& manifest, device::Device& device, const Log& log) {
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
    registration::FaceFinder finder(device, source.detectors);
    const auto faces = finder.find(picture);
    const auto& landmarks =
        registration::choose_face(faces, source.face, picture, source.picture.string()).landmarks;
    Framing framing{.crop = registration::frame_face(landmarks, *manifest.crop.framing),
                    .eye_open = registration::eye_opening(landmarks)};
    framing.eye_ball = registration::iris_movement(landmarks, framing.crop);
    if (!registration::is_centred_on(framing.crop, picture.width, picture.height)) {
        throw Error(ErrorCode::bad_input,
                    fmt::format("{}: the face is cut in half by the picture's edge, wanted more "
                                "of it",
                                source.picture.string()));
    }
    const double face_px = registration::face_size_px(landmarks);
    if (face_px < kSmallFacePx) {
        log(LogLevel::warning,
            "{}: the face is {:.0f} pixels wide, fewer than {:.0f}: the avatar will be blurred",
            source.picture.string(), face_px, kSmallFacePx);
    }
    log(LogLevel::info, "{}: {} face(s); {:.0f} pixels, crop box {:.1f},{:.1f},{:.1f},{:.1f}",
        source.picture.string(), faces.size(), face_px, framing.crop.x, framing.crop.y,
        framing.crop.size, framing.crop.angle_deg);
    return framing;
}

// What the user says counts.
Framing frame(const AvatarSource& source, const RgbImage& picture, const pack::Manifest& manifest,
              device::Device& device, const Log& log) {
    Framing framing;
    if (source.crop) {
        framing.crop = *source.crop;
        if (framing.crop.size < static_cast<double>(manifest.crop.size_px) / 4.0) {
            log(LogLevel::warning,
                "{}: the crop box is {:.0f} pixels wide, the pack draws {}: the avatar will be "
                "blurred",
                source.picture.string(), framing.crop.size, manifest.crop.size_px);
        }
    } else {
        framing = find_framing(source, picture, manifest, device, log);
    }
    if (source.eye_open) framing.eye_open = *source.eye_open;
    if (source.eye_ball) framing.eye_ball = *source.eye_ball;
    return framing;
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
TensorMap make_tensors(const pack::Pack& pack, registration::FaceFeatures features,
                       const RgbImage& crop, const Framing& framing) {
    const auto& manifest = pack.manifest();
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
        if (const auto name = bindings.find("source_image"); name != bindings.end()) {
            tensors.insert_or_assign(name->second, registration::to_planes(crop));
        }
    }
    add_eyes(framing, manifest.motion, tensors);
    return tensors;
}

// Keeps what the engine asks for.
TensorMap select_required(TensorMap tensors, const pack::Manifest& manifest) {
    TensorMap selected;
    for (const auto& [name, shape] : avatar::required_tensors(manifest, 1)) {
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

avatar::AvatarDocument describe(const AvatarSource& source, const pack::Pack& pack,
                                const RgbImage& canvas, const Affine& crop_to_canvas) {
    const fs::path folder = source.folder.lexically_normal();
    const fs::path last =
        folder.has_filename() ? folder.filename() : folder.parent_path().filename();
    avatar::AvatarDocument document;
    document.name = source.name.empty() ? last.string() : source.name;
    document.title = source.title.empty() ? document.name : source.title;
    document.license = source.license;
    document.pack_name = pack.manifest().name;
    document.avatar_key = pack.avatar_key();
    document.width = canvas.width;
    document.height = canvas.height;
    document.crop_to_canvas = {crop_to_canvas};
    return document;
}

}  // namespace

AvatarInfo create_avatar(const EngineOptions& options, const AvatarSource& source) {
    const Log log(options.log);
    check_options(options);
    check_eyes(source);
    if (source.folder.empty() || source.license.empty()) {
        throw Error(ErrorCode::bad_input, source.folder.empty()
                                              ? "avatar folder: found none, wanted a path"
                                              : "licence: found none, wanted a text");
    }
    const RgbImage canvas = read_source(source);
    const auto pack = pack::Pack::open(options.pack);
    const auto crop_size = static_cast<int>(pack.manifest().crop.size_px);
    const auto device = open_chosen_device(options, log);
    const Framing framing = frame(source, canvas, pack.manifest(), *device, log);
    const Affine crop_to_canvas = registration::crop_to_picture(framing.crop, crop_size);
    const RgbImage crop = registration::cut_crop(canvas, crop_to_canvas, crop_size);
    registration::FaceExtractor extractor(pack, *device);
    TensorMap tensors = select_required(make_tensors(pack, extractor.extract(crop), crop, framing),
                                        pack.manifest());
    avatar::write_avatar(source.folder, describe(source, pack, canvas, crop_to_canvas), canvas,
                         tensors, source.replace);
    return describe_avatar(source.folder);
}

}  // namespace newscaster
