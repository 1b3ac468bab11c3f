#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "avatar/avatar.h"
#include "media/image.h"
#include "newscaster/registration.h"
#include "pipeline/avatar_parts.h"
#include "pipeline/engine_impl.h"
#include "pipeline/source_report.h"
#include "registration/crop_box.h"
#include "registration/crop_sampler.h"
#include "registration/extractor.h"
#include "registration/face_finder.h"

namespace newscaster {

namespace {

using pipeline::Framing;

RgbImage read_source(const AvatarSource& source) {
    RgbImage image = media::read_image(source.picture, pipeline::limits_of(source),
                                       pipeline::backdrop_of(source));
    const int width = image.width;
    const int height = image.height;
    RgbImage canvas = pipeline::make_canvas(std::move(image), source.picture.string());
    if (source.crop) registration::check_crop_box(*source.crop, width, height);
    return canvas;
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

Framing find_framing(const AvatarSource& source, const RgbImage& picture,
                     const pack::Manifest& manifest, device::Device& device, const Log& log,
                     pipeline::SourceReport& report) {
    const auto spec = pipeline::choose_framing(source, manifest);
    const std::string name = source.picture.string();
    registration::FaceFinder finder(device, source.detectors);
    const auto faces = finder.find(picture);
    const auto& landmarks = registration::choose_face(faces, source.face, picture, name).landmarks;
    const auto framing = pipeline::frame_landmarks(landmarks, spec, picture);
    if (!framing) {
        throw Error(ErrorCode::bad_input,
                    fmt::format("{}: the face is cut in half by the picture's edge, wanted more "
                                "of it",
                                name));
    }
    report.add(picture, landmarks, framing->crop);
    const double face_px = registration::face_size_px(landmarks);
    pipeline::warn_if_small(face_px, name, log);
    log(LogLevel::info, "{}: {} face(s); {:.0f} pixels, crop box {:.1f},{:.1f},{:.1f},{:.1f}", name,
        faces.size(), face_px, framing->crop.x, framing->crop.y, framing->crop.size,
        framing->crop.angle_deg);
    return *framing;
}

// What the user says counts.
Framing frame(const AvatarSource& source, const RgbImage& picture, const pack::Manifest& manifest,
              device::Device& device, const Log& log, pipeline::SourceReport& report) {
    Framing framing =
        source.crop ? pipeline::frame_given(*source.crop, manifest, source.picture.string(), log)
                    : find_framing(source, picture, manifest, device, log, report);
    if (source.eye_open) framing.eye_open = *source.eye_open;
    if (source.eye_ball) framing.eye_ball = *source.eye_ball;
    return framing;
}

void write_picture_avatar(const AvatarSource& source, const RgbImage& canvas,
                          const pack::Pack& pack, device::Device& device, const Log& log) {
    const auto crop_size = static_cast<int>(pack.manifest().crop.size_px);
    pipeline::SourceReport report(crop_size);
    const Framing framing = frame(source, canvas, pack.manifest(), device, log, report);
    const Affine crop_to_canvas = registration::crop_to_picture(framing.crop, crop_size);
    const RgbImage crop = registration::cut_crop(canvas, crop_to_canvas, crop_size);
    registration::FaceExtractor extractor(pack, device);
    registration::FaceFeatures features = extractor.motion(crop);
    features.appearance = extractor.appearance(crop);
    const TensorMap tensors = pipeline::make_tensors(pack, std::move(features), crop, framing);
    avatar::write_avatar(
        source.folder,
        pipeline::describe(source, pack, canvas.width, canvas.height, {crop_to_canvas}), canvas,
        tensors, source.replace);
    if (!report.empty()) report.write(source.folder, source.picture.filename().string());
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
    const bool clip = media::is_clip(source.picture);
    const RgbImage canvas = clip ? RgbImage{} : read_source(source);
    const auto pack = pack::Pack::open(options.pack);
    const auto device = open_chosen_device(options, log);
    if (clip) {
        pipeline::write_clip_avatar(source, pack, *device, log);
    } else {
        write_picture_avatar(source, canvas, pack, *device, log);
    }
    return describe_avatar(source.folder);
}

}  // namespace newscaster
