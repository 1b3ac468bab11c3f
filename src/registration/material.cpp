#include "registration/material.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

namespace newscaster::registration {

namespace {

// Points of FaceMesh: outer eye corners, chin, brow, inner lips, inner corners of the mouth.
constexpr size_t kLeftEye = 33;
constexpr size_t kRightEye = 263;
constexpr size_t kForehead = 10;
constexpr size_t kChin = 152;
constexpr size_t kUpperLip = 13;
constexpr size_t kLowerLip = 14;
constexpr size_t kMouthLeft = 78;
constexpr size_t kMouthRight = 308;

Point3 minus(const Point3& a, const Point3& b) {
    return {a.x - b.x, a.y - b.y, a.z - b.z};
}

double length(const Point3& v) {
    return std::sqrt(v.x * v.x + v.y * v.y + v.z * v.z);
}

double degrees(double radians) {
    return radians * 180.0 / std::numbers::pi;
}

// Where the plane of the face looks.
void measure_pose(const FaceLandmarks& face, FrameMeasures& measures) {
    const Point3 across = minus(face.mesh[kRightEye], face.mesh[kLeftEye]);
    const Point3 down = minus(face.mesh[kChin], face.mesh[kForehead]);
    // The normal towards the viewer: down x across points out of the picture (z is into it).
    const Point3 normal{down.y * across.z - down.z * across.y,
                        down.z * across.x - down.x * across.z,
                        down.x * across.y - down.y * across.x};
    measures.yaw_deg = degrees(std::atan2(normal.x, -normal.z));
    measures.pitch_deg = degrees(std::atan2(normal.y, std::hypot(normal.x, normal.z)));
}

double luma(const uint8_t* rgb) {
    return 0.2126 * rgb[0] + 0.7152 * rgb[1] + 0.0722 * rgb[2];
}

void measure_light(const RgbImage& picture, const FaceLandmarks& face, FrameMeasures& measures) {
    double x0 = std::numeric_limits<double>::max();
    double y0 = x0;
    double x1 = -x0;
    double y1 = -x0;
    size_t inside = 0;
    for (const Point3& point : face.mesh) {
        x0 = std::min(x0, point.x);
        y0 = std::min(y0, point.y);
        x1 = std::max(x1, point.x);
        y1 = std::max(y1, point.y);
        if (point.x >= 0 && point.y >= 0 && point.x < picture.width && point.y < picture.height) {
            ++inside;
        }
    }
    measures.inside = static_cast<double>(inside) / static_cast<double>(face.mesh.size());
    const int left = std::clamp(static_cast<int>(x0), 0, picture.width - 1);
    const int right = std::clamp(static_cast<int>(x1) + 1, left + 1, picture.width);
    const int top = std::clamp(static_cast<int>(y0), 0, picture.height - 1);
    const int bottom = std::clamp(static_cast<int>(y1) + 1, top + 1, picture.height);
    double sum = 0.0;
    int64_t dark = 0;
    int64_t bright = 0;
    for (int y = top; y < bottom; ++y) {
        for (int x = left; x < right; ++x) {
            const double level = luma(
                &picture.pixels[3 * (static_cast<size_t>(y) * static_cast<size_t>(picture.width) +
                                     static_cast<size_t>(x))]);
            sum += level;
            if (level < 16) ++dark;
            if (level > 250) ++bright;
        }
    }
    const double count = static_cast<double>(right - left) * (bottom - top);
    measures.brightness = sum / count;
    measures.dark_share = static_cast<double>(dark) / count;
    measures.bright_share = static_cast<double>(bright) / count;
}

double rms_difference(const std::vector<double>& plane, size_t width, size_t height) {
    double sum = 0.0;
    for (size_t y = 0; y + 1 < height; ++y) {
        for (size_t x = 0; x + 1 < width; ++x) {
            const size_t at = y * width + x;
            const double across = plane[at + 1] - plane[at];
            const double down = plane[at + width] - plane[at];
            sum += across * across + down * down;
        }
    }
    return std::sqrt(sum / static_cast<double>((width - 1) * (height - 1)));
}

// The middle half of the crop: the face without background and hair.
double sharpness_of(const RgbImage& crop) {
    const size_t side = static_cast<size_t>(std::min(crop.width, crop.height)) / 4 * 2;
    const size_t first_x = (static_cast<size_t>(crop.width) - side) / 2;
    const size_t first_y = (static_cast<size_t>(crop.height) - side) / 2;
    std::vector<double> fine(side * side);
    for (size_t y = 0; y < side; ++y) {
        for (size_t x = 0; x < side; ++x) {
            fine[y * side + x] = luma(
                &crop.pixels[3 * ((first_y + y) * static_cast<size_t>(crop.width) + first_x + x)]);
        }
    }
    const size_t half = side / 2;
    std::vector<double> coarse(half * half);
    for (size_t y = 0; y < half; ++y) {
        for (size_t x = 0; x < half; ++x) {
            const size_t at = 2 * y * side + 2 * x;
            coarse[y * half + x] =
                0.25 * (fine[at] + fine[at + 1] + fine[at + side] + fine[at + side + 1]);
        }
    }
    const double below = rms_difference(coarse, half, half);
    if (!(below > 0.0)) return 0.0;
    return std::max(0.0, 2.0 * rms_difference(fine, side, side) / below - 1.0);
}

// A measure against two limits: beyond `usable` it costs quality, beyond `poor` a lot.
struct Limit {
    double value;
    double usable;
    double poor;
    bool least;  // the limits are lower ones
    std::string advice;
};

int grade(const Limit& limit) {
    const auto beyond = [&](double bound) {
        return limit.least ? limit.value < bound : limit.value > bound;
    };
    return beyond(limit.poor) ? 2 : beyond(limit.usable) ? 1 : 0;
}

std::vector<Limit> limits_of(const std::vector<FrameMeasures>& frames, const ClipCounts& counts) {
    const auto of = [&](double FrameMeasures::*measure) { return spread_of(frames, measure); };
    const auto face = of(&FrameMeasures::face_px);
    const auto yaw = of(&FrameMeasures::yaw_deg);
    const auto pitch = of(&FrameMeasures::pitch_deg);
    const auto mouth = of(&FrameMeasures::mouth_open);
    const auto light = of(&FrameMeasures::brightness);
    const double turned = std::max(std::abs(yaw.least), std::abs(yaw.most));
    const double nodding = std::max(std::abs(pitch.least), std::abs(pitch.most));
    const bool clip = frames.size() > 1;
    std::vector<Limit> limits{
        {face.least, 100, 64, true,
         fmt::format("The face is {:.0f} pixels wide: from 100 on it stays sharp.", face.least)},
        {turned, 20, 35, false,
         fmt::format("The head is turned by {:.0f} degrees: look into the camera.", turned)},
        {nodding, 20, 35, false,
         fmt::format("The head is tilted by {:.0f} degrees: hold the camera at eye level.",
                     nodding)},
        {of(&FrameMeasures::presence).least, 0.9, 0.7, true,
         "Something may cover the face: take hands, hair and cups away from it."},
        {of(&FrameMeasures::inside).least, 0.995, 0.9, true,
         "A part of the face is outside the picture."},
        {light.mean, 60, 35, true,
         fmt::format("The face is dark ({:.0f} of 255): more light from the front.", light.mean)},
        {light.mean, 205, 230, false,
         fmt::format("The face is very bright ({:.0f} of 255): less light.", light.mean)},
        {of(&FrameMeasures::bright_share).mean, 0.03, 0.15, false,
         "Parts of the face are overexposed."},
        {of(&FrameMeasures::sharpness).mean, 0.1, 0.045, true,
         "The picture is blurred or was enlarged: use a sharper one."},
        {of(&FrameMeasures::eyes_open).mean, 0.35, 0.2, true,
         "The eyes are (nearly) closed: open ones look alive."}};
    if (clip) {
        const auto share = [&counts](int64_t part) {
            return static_cast<double>(part) / static_cast<double>(counts.frames);
        };
        limits.push_back({share(counts.without_face), 0.0, 0.5, false,
                          fmt::format("{} of {} frames show no whole face and stay as they are: "
                                      "cut them away.",
                                      counts.without_face, counts.frames)});
        limits.push_back({share(counts.mouth_covered), 0.0, 0.5, false,
                          fmt::format("Something covers the mouth in {} of {} frames, which stay "
                                      "as they are: cut them away.",
                                      counts.mouth_covered, counts.frames)});
        limits.push_back({mouth.most - mouth.least, 0.15, 0.5, false,
                          "The person talks in the clip: a clip of silent listening gives cleaner "
                          "lips."});
    } else {
        limits.push_back({mouth.mean, 0.12, 0.5, false,
                          "The mouth is open: a picture with closed lips gives cleaner speech."});
    }
    return limits;
}

}  // namespace

FrameMeasures measure_frame(const RgbImage& picture, const RgbImage& crop,
                            const FaceLandmarks& face) {
    FrameMeasures measures;
    measures.face_px = face_size_px(face);
    measures.presence = face.presence;
    measure_pose(face, measures);
    const double width = length(minus(face.mesh[kMouthRight], face.mesh[kMouthLeft]));
    const double gap = length(minus(face.mesh[kLowerLip], face.mesh[kUpperLip]));
    measures.mouth_open = width > 0.0 ? gap / width : 0.0;
    const auto eyes = eye_opening(face);
    measures.eyes_open = 0.5 * (eyes[0] + eyes[1]);
    measure_light(picture, face, measures);
    measures.sharpness = sharpness_of(crop);
    return measures;
}

Spread spread_of(const std::vector<FrameMeasures>& frames, double FrameMeasures::*measure) {
    Spread spread{frames.front().*measure, 0.0, frames.front().*measure};
    for (const auto& frame : frames) {
        spread.least = std::min(spread.least, frame.*measure);
        spread.most = std::max(spread.most, frame.*measure);
        spread.mean += frame.*measure / static_cast<double>(frames.size());
    }
    return spread;
}

Verdict judge(const std::vector<FrameMeasures>& frames, const ClipCounts& clip) {
    Verdict verdict;
    int worst = 0;
    for (const Limit& limit : limits_of(frames, clip)) {
        const int found = grade(limit);
        if (found > 0) verdict.advice.push_back(limit.advice);
        worst = std::max(worst, found);
    }
    constexpr std::array kWords{"good", "usable", "poor"};
    verdict.word = kWords.at(static_cast<size_t>(worst));
    return verdict;
}

RgbImage with_points(RgbImage crop, const FaceLandmarks& face, const Affine& crop_to_picture) {
    const Affine& m = crop_to_picture;
    const double det = m[0] * m[4] - m[1] * m[3];
    const auto dot = [&](const Point3& point, std::array<uint8_t, 3> colour) {
        const double dx = point.x - m[2];
        const double dy = point.y - m[5];
        const int x = static_cast<int>(std::floor((m[4] * dx - m[1] * dy) / det));
        const int y = static_cast<int>(std::floor((m[0] * dy - m[3] * dx) / det));
        for (int row = y - 1; row <= y; ++row) {
            for (int column = x - 1; column <= x; ++column) {
                if (row < 0 || column < 0 || row >= crop.height || column >= crop.width) continue;
                const size_t at = 3 * (static_cast<size_t>(row) * static_cast<size_t>(crop.width) +
                                       static_cast<size_t>(column));
                std::ranges::copy(colour, crop.pixels.begin() + static_cast<std::ptrdiff_t>(at));
            }
        }
    };
    for (const Point3& point : face.mesh) dot(point, {64, 255, 96});
    dot(face.left_iris, {255, 64, 64});
    dot(face.right_iris, {255, 64, 64});
    return crop;
}

}  // namespace newscaster::registration
