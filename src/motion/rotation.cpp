#include "motion/rotation.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace newscaster::motion {

namespace {

constexpr double kShortArcRad = 1e-3;  // half angle; about 0.1 degree of rotation

double dot(const Quaternion& a, const Quaternion& b) {
    return a.w * b.w + a.x * b.x + a.y * b.y + a.z * b.z;
}

Quaternion mix(double u, const Quaternion& a, double v, const Quaternion& b) {
    return {u * a.w + v * b.w, u * a.x + v * b.x, u * a.y + v * b.y, u * a.z + v * b.z};
}

Quaternion normalised(const Quaternion& q) {
    return mix(1.0 / std::sqrt(dot(q, q)), q, 0.0, q);
}

// q and -q are the same rotation: the one on the side of `reference`.
Quaternion beside(const Quaternion& reference, const Quaternion& q) {
    return dot(reference, q) < 0.0 ? mix(-1.0, q, 0.0, q) : q;
}

// Half the rotation angle from a to b on the same side; accurate for small angles, where acos of
// the dot product is not.
double half_angle(const Quaternion& a, const Quaternion& b) {
    const Quaternion difference = mix(1.0, b, -1.0, a);
    return 2.0 * std::asin(std::min(1.0, 0.5 * std::sqrt(dot(difference, difference))));
}

}  // namespace

Quaternion quaternion_of(double pitch_deg, double yaw_deg, double roll_deg) {
    constexpr double kHalfRadians = std::numbers::pi / 360.0;
    const double cx = std::cos(pitch_deg * kHalfRadians);
    const double sx = std::sin(pitch_deg * kHalfRadians);
    const double cy = std::cos(yaw_deg * kHalfRadians);
    const double sy = std::sin(yaw_deg * kHalfRadians);
    const double cz = std::cos(roll_deg * kHalfRadians);
    const double sz = std::sin(roll_deg * kHalfRadians);
    return {cz * cy * cx + sz * sy * sx, cz * cy * sx - sz * sy * cx, cz * sy * cx + sz * cy * sx,
            sz * cy * cx - cz * sy * sx};
}

double angle_between_rad(const Quaternion& a, const Quaternion& b) {
    return 2.0 * half_angle(a, beside(a, b));
}

Quaternion slerp(const Quaternion& a, const Quaternion& b, double u) {
    const Quaternion end = beside(a, b);
    const double angle = half_angle(a, end);
    if (angle < kShortArcRad) return normalised(mix(1.0 - u, a, u, end));
    const double sine = std::sin(angle);
    return normalised(mix(std::sin((1.0 - u) * angle) / sine, a, std::sin(u * angle) / sine, end));
}

double nearest_on_arc(const Quaternion& a, const Quaternion& b, const Quaternion& q,
                      double otherwise) {
    const Quaternion end = beside(a, b);
    const double angle = half_angle(a, end);
    if (angle < kShortArcRad) return otherwise;
    const Quaternion across = normalised(mix(1.0, end, -dot(a, end), a));
    const Quaternion near = beside(a, q);
    return std::clamp(std::atan2(dot(near, across), dot(near, a)) / angle, 0.0, 1.0);
}

}  // namespace newscaster::motion
