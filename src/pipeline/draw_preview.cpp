#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "avatar/avatar.h"
#include "composite/compositor.h"
#include "media/image.h"
#include "motion/composer.h"
#include "newscaster/preview.h"
#include "pack/pack.h"
#include "pipeline/engine_impl.h"
#include "pipeline/overlay.h"
#include "registration/face_finder.h"

namespace newscaster {

namespace {

using pipeline::Colour;
using pipeline::Position;

constexpr Colour kCropColour{255, 255, 255};
constexpr Colour kRoiColour{255, 208, 0};
constexpr Colour kFaceColour{64, 255, 96};
constexpr Colour kIrisColour{255, 64, 64};
constexpr Colour kKeypointColour{255, 64, 255};
constexpr double kUntouchedLight = 0.4;   // of what stays as it is
constexpr double kLineShare = 1.0 / 600;  // width of lines over the canvas's longer side
constexpr double kDotShare = 1.0 / 250;   // diameter of a face's points over the crop's side

// One source frame and how it is pasted.
struct Shown {
    const pack::Pack& pack;
    const avatar::Avatar& avatar;
    int64_t frame;

    [[nodiscard]] const Affine& map() const {
        return avatar.crop_to_canvas[static_cast<size_t>(frame)];
    }
    [[nodiscard]] int crop_size() const { return static_cast<int>(pack.manifest().crop.size_px); }
    // Crop pixels to the canvas.
    [[nodiscard]] Position on_canvas(double u, double v) const {
        const Affine& m = map();
        return {m[0] * u + m[1] * v + m[2], m[3] * u + m[4] * v + m[5]};
    }
    [[nodiscard]] double dot_size() const {
        const Affine& m = map();
        return std::max(2.0, kDotShare * std::hypot(m[0], m[3]) * crop_size());
    }
    [[nodiscard]] double line_width() const {
        return std::max(2.0, kLineShare * std::max(avatar.width, avatar.height));
    }
};

RgbImage read_canvas(const avatar::Avatar& avatar, int64_t frame) {
    const auto& files = avatar.canvas_files;
    if (avatar.nv12) {
        return composite::nv12_to_rgb(
            avatar::read_nv12_canvas(files.front(), avatar.width, avatar.height, frame));
    }
    return media::read_image(files.size() == 1 ? files.front() : files[static_cast<size_t>(frame)]);
}

composite::SoftMask mask_of(const Shown& shown) {
    const auto& mask = shown.avatar.mask;
    return {.inset_px = mask.inset_px,
            .feather_px = mask.feather_px,
            .linear = mask.linear,
            .opacity = shown.avatar.opacity[static_cast<size_t>(shown.frame)]};
}

// Darkens what paste-back leaves alone. The mask is seen through paste-back itself: a white crop on
// a black canvas. Returns the box that is touched.
Box dim_untouched(RgbImage& image, const Shown& shown) {
    RgbImage mask{image.width, image.height, std::vector<uint8_t>(image.pixels.size())};
    const composite::PastePlan plan(mask, shown.map(), shown.crop_size(), mask_of(shown));
    const auto side = static_cast<size_t>(shown.crop_size());
    plan.paste_rgb(std::vector<float>(3 * side * side, 1.0F), mask);
    for (size_t i = 0; i < image.pixels.size(); ++i) {
        const double weight = mask.pixels[i] / 255.0;
        const double light = kUntouchedLight + (1.0 - kUntouchedLight) * weight;
        image.pixels[i] = static_cast<uint8_t>(std::lround(image.pixels[i] * light));
    }
    return plan.roi();
}

void draw_outline(RgbImage& image, const std::array<Position, 4>& corners, double width,
                  const Colour& colour) {
    for (size_t i = 0; i < corners.size(); ++i) {
        pipeline::draw_line(image, corners.at(i), corners.at((i + 1) % corners.size()), width,
                            colour);
    }
}

// The face whose nose is in the crop, nearest to its middle.
const registration::FoundFace* face_in_crop(const std::vector<registration::FoundFace>& faces,
                                            const Shown& shown) {
    constexpr size_t kNoseTip = 1;
    const double half = 0.5 * shown.crop_size();
    const Position middle = shown.on_canvas(half, half);
    const Position corner = shown.on_canvas(0.0, 0.0);
    double least = std::hypot(corner[0] - middle[0], corner[1] - middle[1]);
    const registration::FoundFace* nearest = nullptr;
    for (const auto& found : faces) {
        const auto& nose = found.landmarks.mesh.at(kNoseTip);
        const double distance = std::hypot(nose.x - middle[0], nose.y - middle[1]);
        if (distance >= least) continue;
        least = distance;
        nearest = &found;
    }
    return nearest;
}

bool draw_face(RgbImage& image, const RgbImage& canvas, const Shown& shown,
               const std::filesystem::path& detectors) {
    if (detectors.empty()) return false;
    EngineOptions options;
    options.provider = "cpu";
    const auto device = open_chosen_device(options, Log(LogSink{}));
    registration::FaceFinder finder(*device, detectors);
    const auto faces = finder.find(canvas);
    const auto* found = face_in_crop(faces, shown);
    if (found == nullptr) return false;
    const double size = shown.dot_size();
    for (const auto& point : found->landmarks.mesh) {
        pipeline::draw_dot(image, {point.x, point.y}, size, kFaceColour);
    }
    for (const auto& iris : {found->landmarks.left_iris, found->landmarks.right_iris}) {
        pipeline::draw_dot(image, {iris.x, iris.y}, 2.0 * size, kIrisColour);
    }
    return true;
}

std::vector<float> row_of(const avatar::Avatar& avatar, std::string_view name, int64_t frame) {
    const auto row = avatar.tensors.at(std::string(name)).row(frame);
    return {row.begin(), row.end()};
}

void draw_keypoints(RgbImage& image, const Shown& shown) {
    const motion::Composer composer(
        shown.pack,
        {{.canonical_keypoints = row_of(shown.avatar, avatar::kCanonicalKeypoints, shown.frame),
          .motion = row_of(shown.avatar, avatar::kSourceMotion, shown.frame)}});
    const auto points = composer.source_keypoints(0);
    const double half = 0.5 * shown.crop_size();
    for (size_t k = 0; k + 2 < points.size(); k += 3) {
        const Position at = shown.on_canvas(half * (1.0 + static_cast<double>(points[k])),
                                            half * (1.0 + static_cast<double>(points[k + 1])));
        pipeline::draw_dot(image, at, 2.0 * shown.dot_size(), kKeypointColour);
    }
}

}  // namespace

bool draw_preview(const PreviewPicture& preview) {
    const auto pack = pack::Pack::open(preview.pack);
    const auto avatar = avatar::load_avatar(preview.avatar, pack.manifest(), pack.avatar_key());
    if (preview.source_frame < 0 || preview.source_frame >= avatar.source_frames()) {
        throw Error(ErrorCode::bad_input,
                    fmt::format("{}: source frame {}, wanted 0 to {}", preview.avatar.string(),
                                preview.source_frame, avatar.source_frames() - 1));
    }
    const Shown shown{pack, avatar, preview.source_frame};
    const RgbImage canvas = read_canvas(avatar, shown.frame);
    RgbImage image = canvas;
    const Box roi = dim_untouched(image, shown);
    const double width = shown.line_width();
    const auto corner = [](int x, int y) {
        return Position{static_cast<double>(x), static_cast<double>(y)};
    };
    draw_outline(image,
                 {corner(roi.x0, roi.y0), corner(roi.x1, roi.y0), corner(roi.x1, roi.y1),
                  corner(roi.x0, roi.y1)},
                 width, kRoiColour);
    const double side = shown.crop_size();
    draw_outline(image,
                 {shown.on_canvas(0, 0), shown.on_canvas(side, 0), shown.on_canvas(side, side),
                  shown.on_canvas(0, side)},
                 width, kCropColour);
    const bool found = draw_face(image, canvas, shown, preview.detectors);
    if (!found) draw_keypoints(image, shown);
    media::write_png(preview.output, image);
    return found;
}

}  // namespace newscaster
