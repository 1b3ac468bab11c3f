#include "motion/rotation.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <numbers>
#include <random>

namespace newscaster::motion {
namespace {

class RotationTest : public testing::Test {
  protected:
    Quaternion any() { return quaternion_of(angle_(random_), angle_(random_), angle_(random_)); }
    double share() { return share_(random_); }

    std::mt19937 random_{7};
    std::uniform_real_distribution<double> angle_{-60.0, 60.0};
    std::uniform_real_distribution<double> share_{0.0, 1.0};
};

double norm(const Quaternion& q) {
    return std::sqrt(q.w * q.w + q.x * q.x + q.y * q.y + q.z * q.z);
}

Quaternion negated(const Quaternion& q) {
    return {-q.w, -q.x, -q.y, -q.z};
}

// v turned by q: v + 2 w (u x v) + 2 u x (u x v).
std::array<double, 3> turned(const Quaternion& q, const std::array<double, 3>& v) {
    const auto cross = [](const std::array<double, 3>& a, const std::array<double, 3>& b) {
        return std::array<double, 3>{a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2],
                                     a[0] * b[1] - a[1] * b[0]};
    };
    const std::array<double, 3> u{q.x, q.y, q.z};
    const auto once = cross(u, v);
    const auto twice = cross(u, once);
    return {v[0] + 2.0 * (q.w * once[0] + twice[0]), v[1] + 2.0 * (q.w * once[1] + twice[1]),
            v[2] + 2.0 * (q.w * once[2] + twice[2])};
}

TEST_F(RotationTest, EulerOrderIsRollAfterYawAfterPitch) {
    const double pitch = 20.0;
    const double yaw = -35.0;
    const double roll = 50.0;
    std::array<double, 3> stepwise{0.3, -0.2, 0.9};
    const auto whole = turned(quaternion_of(pitch, yaw, roll), stepwise);
    stepwise = turned(quaternion_of(pitch, 0, 0), stepwise);
    stepwise = turned(quaternion_of(0, yaw, 0), stepwise);
    stepwise = turned(quaternion_of(0, 0, roll), stepwise);
    for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(whole.at(i), stepwise.at(i), 1e-12);
    const auto quarter = turned(quaternion_of(90, 0, 0), {0, 1, 0});  // y to z
    EXPECT_NEAR(quarter[2], 1.0, 1e-12);
}

TEST_F(RotationTest, SlerpIsUnitAndMeetsItsEnds) {
    for (int i = 0; i < 200; ++i) {
        const auto a = any();
        const auto b = any();
        EXPECT_NEAR(norm(slerp(a, b, share())), 1.0, 1e-12);
        EXPECT_LT(angle_between_rad(slerp(a, b, 0.0), a), 1e-7);
        EXPECT_LT(angle_between_rad(slerp(a, b, 1.0), b), 1e-7);
    }
}

TEST_F(RotationTest, SlerpHasConstantSpeedAndNoDirection) {
    for (int i = 0; i < 200; ++i) {
        const auto a = any();
        const auto b = any();
        const double u = share();
        const double whole = angle_between_rad(a, b);
        EXPECT_NEAR(angle_between_rad(a, slerp(a, b, u)), u * whole, 1e-6);
        EXPECT_LT(angle_between_rad(slerp(a, b, u), slerp(b, a, 1.0 - u)), 1e-6);
    }
}

TEST_F(RotationTest, SlerpTakesTheShorterWayWhateverTheSign) {
    for (int i = 0; i < 200; ++i) {
        const auto a = any();
        const auto b = any();
        const double u = share();
        EXPECT_LT(angle_between_rad(slerp(a, b, u), slerp(a, negated(b), u)), 1e-6);
        EXPECT_LE(angle_between_rad(a, b), std::numbers::pi);
    }
}

TEST_F(RotationTest, SlerpAboutOneAxisIsTheAngleBetween) {
    const auto half = slerp(quaternion_of(0, 10, 0), quaternion_of(0, 40, 0), 0.5);
    EXPECT_LT(angle_between_rad(half, quaternion_of(0, 25, 0)), 1e-9);
    // Nearly equal rotations: no division by a vanishing sine.
    const auto tiny = slerp(quaternion_of(0, 10, 0), quaternion_of(0, 10.0 + 1e-9, 0), 0.5);
    EXPECT_NEAR(norm(tiny), 1.0, 1e-12);
}

TEST_F(RotationTest, NearestOnArcInvertsSlerp) {
    for (int i = 0; i < 200; ++i) {
        const auto a = any();
        const auto b = any();
        if (angle_between_rad(a, b) < 0.05) continue;
        const double u = share();
        EXPECT_NEAR(nearest_on_arc(a, b, slerp(a, b, u), 0.5), u, 1e-6);
        EXPECT_NEAR(nearest_on_arc(a, b, negated(slerp(a, b, u)), 0.5), u, 1e-6);
    }
    const auto a = quaternion_of(0, 0, 0);
    const auto b = quaternion_of(0, 20, 0);
    EXPECT_EQ(nearest_on_arc(a, b, quaternion_of(0, 30, 0), 0.5), 1.0);
    EXPECT_EQ(nearest_on_arc(a, b, quaternion_of(0, -10, 0), 0.5), 0.0);
    EXPECT_EQ(nearest_on_arc(a, a, b, 0.3), 0.3);
    // Off the arc: a turn about another axis does not pull along it.
    EXPECT_NEAR(nearest_on_arc(a, b, quaternion_of(10, 10, 0), 0.9), 0.5, 0.02);
}

}  // namespace
}  // namespace newscaster::motion
