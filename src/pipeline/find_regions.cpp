// newscaster/forensics.h: where face, mouth and eyes are, from an avatar or by looking.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>

#include "avatar/avatar.h"
#include "composite/compositor.h"
#include "media/image.h"
#include "media/video_source.h"
#include "motion/composer.h"
#include "newscaster/forensics.h"
#include "pack/pack.h"
#include "pipeline/engine_impl.h"
#include "registration/face_finder.h"

namespace newscaster {

namespace {

namespace fs = std::filesystem;

// Heads move: boxes of still points get this much room on every side.
constexpr double kKeypointMargin = 0.08;  // of the crop's width
constexpr double kLandmarkMargin = 0.15;  // of the box's longer side

// FaceMesh's points: corners of the mouth, middle of the upper and lower lip's outer edge; corners
// and lids of both eyes.
constexpr std::array<size_t, 4> kMouthPoints{61, 291, 0, 17};
constexpr std::array<size_t, 8> kEyePoints{33, 133, 159, 145, 362, 263, 386, 374};

class Bounds {
  public:
    void add(double x, double y) {
        x0_ = std::min(x0_, x);
        y0_ = std::min(y0_, y);
        x1_ = std::max(x1_, x);
        y1_ = std::max(y1_, y);
    }
    [[nodiscard]] double longest() const { return std::max(x1_ - x0_, y1_ - y0_); }
    // Whole pixels with `margin` around, inside the canvas; nothing where they miss it.
    [[nodiscard]] std::optional<CanvasBox> box(double margin, int width, int height) const {
        const auto clamp = [](double value, int limit) {
            return static_cast<int>(std::clamp(value, 0.0, static_cast<double>(limit)));
        };
        const CanvasBox box{
            clamp(std::floor(x0_ - margin), width), clamp(std::floor(y0_ - margin), height),
            clamp(std::ceil(x1_ + margin), width), clamp(std::ceil(y1_ + margin), height)};
        if (box.x0 >= box.x1 || box.y0 >= box.y1) return std::nullopt;
        return box;
    }

  private:
    double x0_ = std::numeric_limits<double>::max();
    double y0_ = std::numeric_limits<double>::max();
    double x1_ = std::numeric_limits<double>::lowest();
    double y1_ = std::numeric_limits<double>::lowest();
};

std::vector<float> row_of(const avatar::Avatar& avatar, std::string_view name) {
    const auto row = avatar.tensors.at(std::string(name)).row(0);
    return {row.begin(), row.end()};
}

std::optional<CanvasBox> group_box(const pack::Manifest& manifest, const std::string& group,
                                   const std::vector<float>& keypoints,
                                   const avatar::Avatar& avatar) {
    const auto found = manifest.keypoints.groups.find(group);
    if (found == manifest.keypoints.groups.end() || found->second.empty()) return std::nullopt;
    const auto size = static_cast<double>(manifest.crop.size_px);
    const Affine& m = avatar.crop_to_canvas.front();
    Bounds bounds;
    for (const int64_t k : found->second) {
        const auto at = static_cast<size_t>(3 * k);
        for (const double side : {-kKeypointMargin, kKeypointMargin}) {
            const double u = (0.5 * (1.0 + static_cast<double>(keypoints[at])) + side) * size;
            const double v = (0.5 * (1.0 + static_cast<double>(keypoints[at + 1])) + side) * size;
            bounds.add(m[0] * u + m[1] * v + m[2], m[3] * u + m[4] * v + m[5]);
        }
    }
    return bounds.box(0.0, avatar.width, avatar.height);
}

std::optional<CanvasBox> points_box(const registration::FaceLandmarks& face,
                                    std::span<const size_t> points, int width, int height) {
    Bounds bounds;
    for (const size_t point : points) bounds.add(face.mesh.at(point).x, face.mesh.at(point).y);
    return bounds.box(kLandmarkMargin * bounds.longest(), width, height);
}

}  // namespace

ForensicsRegions regions_of_avatar(const fs::path& avatar_folder, const fs::path& pack_folder) {
    const auto pack = pack::Pack::open(pack_folder);
    const auto& manifest = pack.manifest();
    const auto avatar = avatar::load_avatar(avatar_folder, manifest, pack.avatar_key());
    const motion::Composer composer(
        pack, {{.canonical_keypoints = row_of(avatar, avatar::kCanonicalKeypoints),
                .motion = row_of(avatar, avatar::kSourceMotion)}});
    const auto keypoints = composer.source_keypoints(0);
    const composite::PastePlan plan(media::read_image(avatar.canvas_files.front()),
                                    avatar.crop_to_canvas.front(),
                                    static_cast<int>(manifest.crop.size_px),
                                    {.inset_px = avatar.mask.inset_px,
                                     .feather_px = avatar.mask.feather_px,
                                     .linear = avatar.mask.linear});
    const Box& roi = plan.roi();
    return {CanvasBox{roi.x0, roi.y0, roi.x1, roi.y1},
            group_box(manifest, "lips", keypoints, avatar),
            group_box(manifest, "eyes", keypoints, avatar),
            fmt::format("of the avatar {}", avatar.name)};
}

ForensicsRegions find_regions(const fs::path& video, const fs::path& detectors) {
    EngineOptions options;
    options.provider = "cpu";
    const auto device = open_chosen_device(options, Log(LogSink{}));
    registration::FaceFinder finder(*device, detectors);
    const auto source = media::VideoSource::open(video.string());
    const double fps = source->format().fps.to_double();
    while (const auto picture = source->read()) {
        if (static_cast<double>(picture->index) > fps) break;
        const int width = picture->width;
        const int height = picture->height;
        const auto faces = finder.find(media::to_rgb(*picture, {0, 0, width, height}));
        if (faces.empty()) continue;
        const auto& face = faces.front().landmarks;
        return {std::nullopt, points_box(face, kMouthPoints, width, height),
                points_box(face, kEyePoints, width, height),
                fmt::format("mouth and eyes found in frame {}; no face box without an avatar",
                            picture->index)};
    }
    return {std::nullopt, std::nullopt, std::nullopt,
            "none: no face was found in the first second, the canvas alone is measured"};
}

}  // namespace newscaster
