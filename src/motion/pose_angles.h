// Reading of spans whose stored numbers are not the quantity itself: binned angles, offset scales.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "pack/manifest.h"

namespace newscaster::motion {

// Pitch, yaw, roll: the order of every array of three angles in this room.
inline constexpr std::array<pack::SpanKind, 3> kPoseKinds{
    pack::SpanKind::pitch_deg, pack::SpanKind::yaw_deg, pack::SpanKind::roll_deg};

// The part of a motion row that a span covers.
template <typename T>
[[nodiscard]] std::span<T> part(std::span<T> row, const pack::MotionSpan& span) {
    return row.subspan(static_cast<size_t>(span.offset), static_cast<size_t>(span.size));
}

// Degrees of a pose span relative to its neutral value: the number itself, or
// step * sum(softmax(logits) * index) + offset for a binned span. 0 when the layout has no such
// span.
[[nodiscard]] double angle_deg(const pack::MotionSpec& spec, pack::SpanKind kind,
                               std::span<const float> row);

// One frame's motion in the pack's layout. An angle that was changed in degrees replaces what a
// binned span of the row says.
struct PosedRow {
    std::vector<float> row;
    std::array<std::optional<double>, 3> angles_deg{};  // relative to neutral

    [[nodiscard]] double angle(const pack::MotionSpec& spec, size_t which) const;
    // Written to the row where the span holds degrees, kept beside it where it holds bins.
    void set_angle(const pack::MotionSpec& spec, size_t which, double degrees);
};

}  // namespace newscaster::motion
