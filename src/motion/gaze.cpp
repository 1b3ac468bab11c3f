#include "motion/gaze.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "motion/pose_angles.h"

namespace newscaster::motion {

namespace {

// Two coefficients that turn one eye to opposite sides; `sign` is that of the first, in the axes
// of turn_eyes().
struct EyePair {
    std::string_view positive;
    std::string_view negative;
    bool is_yaw;
};

// The picture's left is the subject's right: outwards for the right eye, inwards for the left.
constexpr std::array<EyePair, 4> kEyePairs{{{"eyeLookInLeft", "eyeLookOutLeft", true},
                                            {"eyeLookOutRight", "eyeLookInRight", true},
                                            {"eyeLookDownLeft", "eyeLookUpLeft", false},
                                            {"eyeLookDownRight", "eyeLookUpRight", false}}};

// Dim of a blendshape, or -1.
int64_t dim_of(const pack::MotionSpec& spec, std::string_view channel) {
    const auto* span = spec.find(pack::SpanKind::blendshapes);
    if (span == nullptr) return -1;
    const auto found = std::find(span->channels.begin(), span->channels.end(), channel);
    return found == span->channels.end() ? -1 : span->offset + (found - span->channels.begin());
}

}  // namespace

bool can_turn_eyes(const pack::MotionSpec& spec) {
    if (spec.composition && spec.composition->gaze) return true;
    return std::all_of(kEyePairs.begin(), kEyePairs.end(), [&](const EyePair& pair) {
        return dim_of(spec, pair.positive) >= 0 && dim_of(spec, pair.negative) >= 0;
    });
}

void correct_gaze(const pack::MotionSpec& spec, double yaw_deg, double pitch_deg,
                  std::span<float> row) {
    const auto* expression = spec.find(pack::SpanKind::expression);
    if (expression == nullptr || !spec.composition || !spec.composition->gaze) return;
    const pack::GazeSpec& gaze = *spec.composition->gaze;
    const auto values = part(row, *expression);
    for (const auto& offset : gaze.offsets) {
        const double degrees =
            offset.by_pitch ? pitch_deg * gaze.pitch_ratio : yaw_deg * gaze.yaw_ratio;
        float& value = values[static_cast<size_t>(3 * offset.keypoint + offset.axis)];
        value += static_cast<float>(degrees * (degrees > 0.0 ? offset.above : offset.below));
    }
}

void turn_eyes(const pack::MotionSpec& spec, double yaw_deg, double pitch_deg,
               std::span<float> row) {
    for (const EyePair& pair : kEyePairs) {
        const int64_t positive = dim_of(spec, pair.positive);
        const int64_t negative = dim_of(spec, pair.negative);
        const double degrees = pair.is_yaw ? yaw_deg : pitch_deg;
        if (positive < 0 || negative < 0 || degrees == 0.0) continue;
        float& more = row[static_cast<size_t>(positive)];
        float& less = row[static_cast<size_t>(negative)];
        const double turned = static_cast<double>(more) - less + degrees / kEyeLookFullDeg;
        more = static_cast<float>(std::clamp(turned, 0.0, 1.0));
        less = static_cast<float>(std::clamp(-turned, 0.0, 1.0));
    }
}

}  // namespace newscaster::motion
