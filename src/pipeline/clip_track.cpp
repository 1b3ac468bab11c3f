#include "pipeline/clip_track.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "media/clip_source.h"
#include "media/read_ahead.h"
#include "newscaster/error.h"
#include "registration/crop_box.h"
#include "registration/mouth_cover.h"

namespace newscaster::pipeline {

namespace {

constexpr double kRampSeconds = 0.25;
constexpr size_t kReportEvery = 5;     // frames: the report looks at a part of them
constexpr size_t kSearchEvery = 3;     // frames without a face: searching costs most
constexpr size_t kMaxFrames = 15'000;  // ten minutes at 25 fps

// Follows one face from frame to frame.
class FaceTrack {
  public:
    FaceTrack(const AvatarSource& source, device::Device& device)
        : source_(source), finder_(device, source.detectors) {}

    // nullopt when there is no face.
    std::optional<registration::FaceLandmarks> next(const RgbImage& picture) {
        std::optional<registration::FaceLandmarks> found;
        if (last_ && absent_ == 0) found = finder_.follow(picture, *last_);
        if (!found && absent_ % kSearchEvery == 0) found = search(picture);
        absent_ = found ? 0 : absent_ + 1;
        if (found) last_ = found;
        return found;
    }

  private:
    std::optional<registration::FaceLandmarks> search(const RgbImage& picture) {
        const auto faces = finder_.find(picture);
        if (faces.empty()) return std::nullopt;
        if (!last_) {
            return registration::choose_face(faces, source_.face, picture, source_.picture.string())
                .landmarks;
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
    size_t absent_ = 0;  // frames since the face was seen
};

CropBox between(const CropBox& a, const CropBox& b, double share) {
    const auto mix = [share](double from, double to) { return from + share * (to - from); };
    const double size = mix(a.size, b.size);
    return {.x = mix(a.x + a.size / 2.0, b.x + b.size / 2.0) - size / 2.0,
            .y = mix(a.y + a.size / 2.0, b.y + b.size / 2.0) - size / 2.0,
            .size = size,
            .angle_deg = mix(a.angle_deg, b.angle_deg)};
}

// The frames [begin, end) without a face: of the nearest one, or on the way between two.
void fill_gap(const std::vector<std::optional<Framing>>& found, size_t begin, size_t end,
              std::vector<Framing>& framings) {
    for (size_t i = begin; i < end; ++i) {
        if (begin == 0 || end == found.size()) {
            framings[i] = begin == 0 ? *found[end] : *found[begin - 1];
            continue;
        }
        const double share =
            static_cast<double>(i - begin + 1) / static_cast<double>(end - begin + 1);
        framings[i] = share < 0.5 ? *found[begin - 1] : *found[end];
        framings[i].crop = between(found[begin - 1]->crop, found[end]->crop, share);
    }
}

double smoothstep(double t) {
    return t * t * (3.0 - 2.0 * t);
}

// Rises over `ramp` frames from the next one without a face.
std::vector<double> eased_opacity(const std::vector<bool>& has_face, size_t ramp) {
    std::vector<size_t> distance(has_face.size(), ramp + 1);
    for (size_t i = 0; i < has_face.size(); ++i) {
        if (!has_face[i]) {
            distance[i] = 0;
        } else if (i > 0) {
            distance[i] = std::min(ramp + 1, distance[i - 1] + 1);
        }
    }
    for (size_t i = has_face.size() - 1; i-- > 0;) {
        distance[i] = std::min(distance[i], distance[i + 1] + 1);
    }
    std::vector<double> opacity;
    opacity.reserve(distance.size());
    for (const size_t frames : distance) {
        opacity.push_back(smoothstep(static_cast<double>(frames) / static_cast<double>(ramp + 1)));
    }
    return opacity;
}

// What the pass over the clip collects.
struct Findings {
    std::vector<std::optional<Framing>> framings;
    registration::MouthCover mouth;  // of those with a framing
    double least_px = 1e9;
};

// The box that the user gave, in every frame.
std::optional<Framing> given_framing(const AvatarSource& source, const pack::Manifest& manifest,
                                     const RgbImage& picture, const Findings& findings,
                                     const Log& log) {
    if (!findings.framings.empty()) return findings.framings.back();
    registration::check_crop_box(*source.crop, picture.width, picture.height);
    return frame_given(*source.crop, manifest, source.picture.string(), log);
}

std::optional<Framing> found_framing(const RgbImage& picture, const pack::FramingSpec& spec,
                                     FaceTrack& track, Findings& findings, SourceReport& report) {
    const auto landmarks = track.next(picture);
    if (!landmarks) return std::nullopt;
    const auto framing = frame_landmarks(*landmarks, spec, picture);
    if (!framing) return std::nullopt;
    findings.mouth.add(picture, *landmarks);
    findings.least_px = std::min(findings.least_px, registration::face_size_px(*landmarks));
    if (findings.framings.size() % kReportEvery == 0) {
        report.add(picture, *landmarks, framing->crop);
    }
    return framing;
}

Findings read_clip(const AvatarSource& source, const pack::Manifest& manifest,
                   device::Device& device, const Log& log, SourceReport& report) {
    std::optional<FaceTrack> track;
    pack::FramingSpec spec;
    if (!source.crop) {
        spec = choose_framing(source, manifest);
        track.emplace(source, device);
    }
    const double fps = manifest.frame_rate.to_double();
    const auto clip = media::read_ahead(media::ClipSource::open(
        source.picture, manifest.frame_rate, limits_of(source), backdrop_of(source)));
    Findings findings;
    while (const auto picture = clip->read()) {
        if (findings.framings.size() == kMaxFrames) {
            log(LogLevel::warning, "{}: is longer than {:.0f} s; only they are used, as a loop",
                source.picture.string(), kMaxFrames / fps);
            break;
        }
        const auto framing = track ? found_framing(*picture, spec, *track, findings, report)
                                   : given_framing(source, manifest, *picture, findings, log);
        findings.framings.push_back(framing);
    }
    return findings;
}

// Frames in which something covers the mouth lose their framing; yields their number.
int64_t drop_covered(Findings& findings) {
    const auto shares = findings.mouth.shares();
    int64_t dropped = 0;
    size_t next = 0;
    for (auto& framing : findings.framings) {
        if (!framing || next == shares.size()) continue;
        if (shares[next++] < registration::kCoveredShare) continue;
        framing.reset();
        ++dropped;
    }
    return dropped;
}

std::string first_without(const std::vector<bool>& has_face, double fps) {
    const auto first = std::ranges::find(has_face, false) - has_face.begin();
    return fmt::format("{:.2f} s", static_cast<double>(first) / fps);
}

}  // namespace

ClipTrack fill_gaps(const std::vector<std::optional<Framing>>& found, size_t ramp) {
    ClipTrack track;
    track.framings.resize(found.size());
    track.has_face.resize(found.size(), true);
    for (size_t i = 0; i < found.size();) {
        if (found[i]) {
            track.framings[i] = *found[i];
            ++i;
            continue;
        }
        size_t end = i;
        while (end < found.size() && !found[end]) ++end;
        fill_gap(found, i, end, track.framings);
        const bool missed = end - i <= kMissedFrames && i > 0 && end < found.size();
        for (; i < end; ++i) track.has_face[i] = missed;
    }
    track.opacity = eased_opacity(track.has_face, ramp);
    return track;
}

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

ClipTrack track_clip(const AvatarSource& source, const pack::Manifest& manifest,
                     device::Device& device, const Log& log, SourceReport& report) {
    const std::string name = source.picture.string();
    Findings findings = read_clip(source, manifest, device, log, report);
    const auto with_face = std::ranges::count_if(
        findings.framings, [](const auto& framing) { return framing.has_value(); });
    if (with_face == 0) {
        throw Error(ErrorCode::bad_input,
                    fmt::format("{}: no face was found in any of {} frames; give the crop box "
                                "(--crop), or a clip in which the face is larger and looks at the "
                                "camera",
                                name, findings.framings.size()));
    }
    if (!source.crop) warn_if_small(findings.least_px, name, log);
    const int64_t covered = drop_covered(findings);
    const double fps = manifest.frame_rate.to_double();
    ClipTrack track =
        fill_gaps(findings.framings, static_cast<size_t>(std::lround(kRampSeconds * fps)));
    const auto without = std::ranges::count(track.has_face, false);
    if (without > 0) {
        log(LogLevel::warning,
            "{}: {} of {} frames show no whole face or a covered mouth, the first at {}; they "
            "are shown unchanged",
            name, without, track.has_face.size(), first_without(track.has_face, fps));
    }
    report.set_clip({.frames = std::ssize(track.has_face),
                     .without_face = std::max<int64_t>(without - covered, 0),
                     .mouth_covered = covered});
    smooth_boxes(track.framings, source.smooth_source);
    return track;
}

}  // namespace newscaster::pipeline
