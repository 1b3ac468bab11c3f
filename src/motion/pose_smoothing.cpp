#include "motion/pose_smoothing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "newscaster/error.h"

namespace newscaster::motion {

namespace {

constexpr double kRadiansPerDegree = std::numbers::pi / 180.0;

// Row i: weights of the five frames for frame i of the window; rows 3 and 4 mirror 1 and 0.
constexpr std::array<std::array<double, 5>, 5> kWeights{{{31.0, 9.0, -3.0, -5.0, 3.0},
                                                         {9.0, 13.0, 12.0, 6.0, -5.0},
                                                         {-3.0, 12.0, 17.0, 12.0, -3.0},
                                                         {-5.0, 6.0, 12.0, 13.0, 9.0},
                                                         {3.0, -5.0, -3.0, 9.0, 31.0}}};
constexpr double kWeightSum = 35.0;

// Angles are stored as floats: what is clamped keeps a hair's breadth of room for their rounding.
constexpr double kRoom = 0.999;

double length(const std::array<double, 3>& v) {
    return std::sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
}

}  // namespace

void check_acceleration(double rad_s2) {
    if (std::isfinite(rad_s2) && rad_s2 >= 0.0) return;
    throw Error(
        ErrorCode::bad_input,
        fmt::format("max_angular_acceleration: found {}, wanted 0 (no bound) or more rad/s^2",
                    rad_s2));
}

double BoundedFollower::follow(double target) {
    double out = target;
    if (count_ >= 2) {
        const bool on_track = out_ == in_;
        const bool within = std::abs(target - 2.0 * out_[0] + out_[1]) <= most_;
        if (!on_track || !within) {
            const double speed = out_[0] - out_[1];
            const double behind = in_[0] - out_[0];
            // Catch up at most as fast as the bound can brake again in what is left after this
            // frame: v + v^2 / (2 a) = s.
            const double half = most_ / 2.0;
            const double fastest = std::sqrt(half * half + 2.0 * most_ * std::abs(behind)) - half;
            const double catch_up = std::min(std::abs(behind), fastest);
            const double wanted = target - in_[0] + std::copysign(catch_up, behind);
            const double most = kRoom * most_;
            out = out_[0] + std::clamp(wanted, speed - most, speed + most);
        }
    }
    ++count_;
    in_ = {target, in_[0]};
    out_ = {out, out_[0]};
    return out;
}

void KinematicsMeter::add(const std::array<double, 3>& angles_deg) {
    last_.push_front({angles_deg[0] * kRadiansPerDegree, angles_deg[1] * kRadiansPerDegree,
                      angles_deg[2] * kRadiansPerDegree});
    if (last_.size() > 4) last_.pop_back();
    if (last_.size() < 3) return;
    for (size_t axis = 0; axis < 3; ++axis) {
        const double bend = last_[0].at(axis) - 2.0 * last_[1].at(axis) + last_[2].at(axis);
        acceleration_peak_ = std::max(acceleration_peak_, std::abs(bend) * fps_ * fps_);
    }
    if (last_.size() < 4) return;
    std::array<double, 3> jerk{};
    for (size_t axis = 0; axis < 3; ++axis) {
        jerk.at(axis) = (last_[0].at(axis) - 3.0 * last_[1].at(axis) + 3.0 * last_[2].at(axis) -
                         last_[3].at(axis)) *
                        fps_ * fps_ * fps_;
    }
    jerk_sum_ += length(jerk);
    jerk_peak_ = std::max(jerk_peak_, length(jerk));
    ++jerks_;
}

PoseKinematics KinematicsMeter::result() const {
    return {.mean_jerk = jerks_ == 0 ? 0.0 : jerk_sum_ / static_cast<double>(jerks_),
            .peak_jerk = jerk_peak_,
            .peak_acceleration = acceleration_peak_};
}

PoseSmoother::PoseSmoother(const pack::MotionSpec& spec, const Options& options)
    : spec_(spec), smooth_(options.smooth), given_(options.fps), drawn_(options.fps) {
    if (options.max_acceleration > 0.0) {
        const double most = options.max_acceleration / kRadiansPerDegree;
        followers_.assign(3, BoundedFollower(most / (options.fps * options.fps)));
    }
}

PoseSmoother::Pose PoseSmoother::pose_of(const PosedRow& motion) const {
    Pose pose{};
    for (size_t i = 0; i < kPoseKinds.size(); ++i) pose.at(i) = motion.angle(spec_, i);
    if (const auto* span = spec_.find(pack::SpanKind::translation); span != nullptr) {
        for (size_t i = 0; i < static_cast<size_t>(span->axes); ++i) {
            pose.at(3 + i) = motion.row[static_cast<size_t>(span->offset) + i];
        }
    }
    return pose;
}

PoseSmoother::Pose PoseSmoother::smoothed(size_t at) const {
    Pose pose{};
    for (size_t i = 0; i < kWindow; ++i) {
        for (size_t k = 0; k < kValues; ++k) {
            pose.at(k) += kWeights.at(at).at(i) / kWeightSum * poses_[i].at(k);
        }
    }
    return pose;
}

std::vector<MixedFrame> PoseSmoother::push(MixedFrame frame) {
    const Pose pose = pose_of(frame.motion);
    given_.add({pose[0], pose[1], pose[2]});
    std::vector<MixedFrame> ready;
    if (!smooth_) {
        bound(frame.motion);
        ready.push_back(std::move(frame));
        return ready;
    }
    if (frames_.size() == kWindow) {
        frames_.pop_front();
        poses_.pop_front();
        --taken_;
    }
    frames_.push_back(std::move(frame));
    poses_.push_back(pose);
    if (frames_.size() < kWindow) return ready;
    while (taken_ + kLag < kWindow) ready.push_back(take(taken_));
    return ready;
}

std::vector<MixedFrame> PoseSmoother::finish() {
    std::vector<MixedFrame> ready;
    while (taken_ < frames_.size()) ready.push_back(take(taken_));
    return ready;
}

MixedFrame PoseSmoother::take(size_t at) {
    MixedFrame frame = std::move(frames_[at]);
    if (frames_.size() == kWindow) {
        const Pose pose = smoothed(at);
        for (size_t i = 0; i < kPoseKinds.size(); ++i) frame.motion.set_angle(spec_, i, pose.at(i));
        if (const auto* span = spec_.find(pack::SpanKind::translation); span != nullptr) {
            for (size_t i = 0; i < static_cast<size_t>(span->axes); ++i) {
                frame.motion.row[static_cast<size_t>(span->offset) + i] =
                    static_cast<float>(pose.at(3 + i));
            }
        }
    }
    ++taken_;
    bound(frame.motion);
    return frame;
}

void PoseSmoother::bound(PosedRow& motion) {
    for (size_t i = 0; i < followers_.size(); ++i) {
        const double angle = motion.angle(spec_, i);
        const double followed = followers_[i].follow(angle);
        if (followed != angle) motion.set_angle(spec_, i, followed);
    }
    drawn_.add({motion.angle(spec_, 0), motion.angle(spec_, 1), motion.angle(spec_, 2)});
}

}  // namespace newscaster::motion
