#include "pipeline/mouth_of_video.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "media/video_source.h"
#include "newscaster/error.h"
#include "registration/face_finder.h"
#include "sync/lip_tracker.h"

namespace newscaster::pipeline {

namespace {

namespace fs = std::filesystem;

// FaceMesh's points: inner edges of the upper and the lower lip, outer corners of the eyes.
constexpr size_t kUpperLip = 13;
constexpr size_t kLowerLip = 14;
constexpr size_t kLeftCorner = 33;
constexpr size_t kRightCorner = 263;

constexpr double kLeastFound = 0.8;  // share of frames with a face
constexpr double kRoom = 0.75;       // around the face of the frame before, in its longer sides

double distance(const registration::Point3& a, const registration::Point3& b) {
    return std::hypot(a.x - b.x, a.y - b.y);
}

// Calls `visit` with every picture; the video's frame rate.
template <typename Visit>
double read_all(const fs::path& video, const FrameProgress& progress, const Visit& visit) {
    const auto source = media::VideoSource::open(video.string());
    int64_t frames = 0;
    while (const auto picture = source->read()) {
        visit(*picture);
        if (progress && !progress(++frames)) {
            throw Error(ErrorCode::cancelled, "the measurement was cancelled");
        }
    }
    return source->format().fps.to_double();
}

class LipFinder {
  public:
    LipFinder(device::Device& device, const fs::path& detectors) : finder_(device, detectors) {}

    std::optional<double> opening(const media::VideoPicture& picture) {
        const Box whole{0, 0, picture.width, picture.height};
        auto faces = finder_.find(media::to_rgb(picture, last_.value_or(whole)));
        if (faces.empty() && last_) {
            last_.reset();
            faces = finder_.find(media::to_rgb(picture, whole));
        }
        if (faces.empty()) return std::nullopt;
        const auto& mesh = faces.front().landmarks.mesh;
        look_here(mesh, last_.value_or(whole), whole);
        const double eyes = distance(mesh[kLeftCorner], mesh[kRightCorner]);
        if (eyes <= 0.0) return std::nullopt;
        return distance(mesh[kUpperLip], mesh[kLowerLip]) / eyes;
    }

  private:
    void look_here(const std::vector<registration::Point3>& mesh, const Box& searched,
                   const Box& whole) {
        const auto [left, right] = std::ranges::minmax(mesh, {}, &registration::Point3::x);
        const auto [top, bottom] = std::ranges::minmax(mesh, {}, &registration::Point3::y);
        const double room = kRoom * std::max(right.x - left.x, bottom.y - top.y);
        const auto clamp = [](double value, int limit) {
            return static_cast<int>(std::clamp(value, 0.0, static_cast<double>(limit)));
        };
        last_ = Box{clamp(searched.x0 + left.x - room, whole.x1),
                    clamp(searched.y0 + top.y - room, whole.y1),
                    clamp(searched.x0 + right.x + room, whole.x1),
                    clamp(searched.y0 + bottom.y + room, whole.y1)};
        if (last_->width() <= 0 || last_->height() <= 0) last_.reset();
    }

    registration::FaceFinder finder_;
    std::optional<Box> last_;
};

// Frames without a value lie on the line between their neighbours; ends are held. One value or
// more.
std::vector<double> filled(const std::vector<std::optional<double>>& values) {
    std::vector<double> out(values.size());
    std::optional<size_t> before;
    for (size_t i = 0; i < values.size(); ++i) {
        if (!values[i]) continue;
        const size_t first = before.value_or(i);
        for (size_t k = before ? *before + 1 : 0; k <= i; ++k) {
            const double share =
                i > first ? static_cast<double>(k - first) / static_cast<double>(i - first) : 1.0;
            out[k] = (1.0 - share) * *values[first] + share * *values[i];
        }
        before = i;
    }
    for (size_t k = before.value_or(0) + 1; k < out.size(); ++k) out[k] = out[k - 1];
    return out;
}

}  // namespace

sync::MouthTrack mouth_in_box(const fs::path& video, const Box& mouth,
                              const FrameProgress& progress) {
    sync::LipTracker tracker(mouth);
    sync::MouthTrack track;
    track.fps = read_all(video, progress, [&](const media::VideoPicture& picture) {
        track.opening.push_back(tracker.opening(picture));
    });
    return track;
}

sync::MouthTrack mouth_by_landmarks(const fs::path& video, device::Device& device,
                                    const fs::path& detectors, const FrameProgress& progress) {
    LipFinder finder(device, detectors);
    std::vector<std::optional<double>> values;
    sync::MouthTrack track;
    track.fps = read_all(video, progress, [&](const media::VideoPicture& picture) {
        values.push_back(finder.opening(picture));
    });
    const auto found = std::ranges::count_if(values, [](const auto& v) { return v.has_value(); });
    if (static_cast<double>(found) < kLeastFound * static_cast<double>(values.size()) ||
        found == 0) {
        throw Error(ErrorCode::bad_input,
                    fmt::format("{}: found a face in {} of {} frames, wanted four in five",
                                video.string(), found, values.size()));
    }
    track.opening = filled(values);
    return track;
}

}  // namespace newscaster::pipeline
