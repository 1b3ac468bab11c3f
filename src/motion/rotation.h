// Head rotations as unit quaternions, for interpolation between poses.
#pragma once

namespace newscaster::motion {

struct Quaternion {
    double w = 1.0;
    double x = 0.0;
    double y = 0.0;
    double z = 0.0;
};

// The rotation Rz(roll) Ry(yaw) Rx(pitch) of the composer, angles in degrees.
[[nodiscard]] Quaternion quaternion_of(double pitch_deg, double yaw_deg, double roll_deg);

// Angle of the shorter way from one rotation to the other, in [0, pi].
[[nodiscard]] double angle_between_rad(const Quaternion& a, const Quaternion& b);

// Spherical linear interpolation along the shorter arc (Shoemake 1985): a at u = 0, b at u = 1,
// constant angular speed.
[[nodiscard]] Quaternion slerp(const Quaternion& a, const Quaternion& b, double u);

// The u in [0, 1] at which slerp(a, b, u) is nearest to q; `otherwise` when a and b are so close
// that the arc has no direction.
[[nodiscard]] double nearest_on_arc(const Quaternion& a, const Quaternion& b, const Quaternion& q,
                                    double otherwise);

}  // namespace newscaster::motion
