// Smoother head motion: Savitzky-Golay smoothing of the pose and a bound on its acceleration, and
// what both do to it in numbers.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "motion/motion_mixer.h"
#include "newscaster/engine.h"
#include "pack/manifest.h"

namespace newscaster::motion {

// Follows an angle with bounded acceleration: second differences of what comes out stay within
// `most` of zero. A track that keeps the bound comes out as it went in; after one that does not,
// the follower brakes in time and catches up. Causal: needs no frames ahead.
class BoundedFollower {
  public:
    explicit BoundedFollower(double most) : most_(most) {}

    double follow(double target);

  private:
    double most_;
    int64_t count_ = 0;
    std::array<double, 2> out_{};  // the last two, newest first
    std::array<double, 2> in_{};
};

// Jerk and acceleration of a rotation, from differences of pitch, yaw and roll.
class KinematicsMeter {
  public:
    explicit KinematicsMeter(double fps) : fps_(fps) {}

    void add(const std::array<double, 3>& angles_deg);
    [[nodiscard]] PoseKinematics result() const;

  private:
    double fps_;
    std::deque<std::array<double, 3>> last_;  // at most 4, radians
    double jerk_sum_ = 0.0;
    double jerk_peak_ = 0.0;
    double acceleration_peak_ = 0.0;
    int64_t jerks_ = 0;
};

// Throws Error(bad_input) unless it is a finite number, 0 or more.
void check_acceleration(double rad_s2);

// Smooths a track frame by frame; what comes out does not depend on how it came in (a whole track
// or a stream), and lags two frames. Pitch, yaw, roll and translation change, nothing else.
//
// The filter is Savitzky and Golay's (1964) with five points and a quadratic: the middle frame is
// (-3, 12, 17, 12, -3) / 35 of the five around it. The first two and last two frames are those of
// the quadratic through the first and last five (scipy.signal.savgol_filter, mode "interp"). Tracks
// of fewer than five frames stay as they are.
class PoseSmoother {
  public:
    static constexpr size_t kWindow = 5;
    static constexpr size_t kLag = 2;

    struct Options {
        bool smooth = false;
        double max_acceleration = 0.0;  // rad/s^2 of each angle; 0: no bound
        double fps = 25.0;
    };

    PoseSmoother(const pack::MotionSpec& spec, const Options& options);

    std::vector<MixedFrame> push(MixedFrame frame);
    std::vector<MixedFrame> finish();

    [[nodiscard]] PoseKinematics given() const { return given_.result(); }
    [[nodiscard]] PoseKinematics drawn() const { return drawn_.result(); }

  private:
    static constexpr size_t kValues = 6;  // pitch, yaw, roll, x, y, z
    using Pose = std::array<double, kValues>;

    [[nodiscard]] Pose pose_of(const PosedRow& motion) const;
    // The smoothed pose of the window's frame `at`.
    [[nodiscard]] Pose smoothed(size_t at) const;
    MixedFrame take(size_t at);
    void bound(PosedRow& motion);

    pack::MotionSpec spec_;
    bool smooth_;
    std::vector<BoundedFollower> followers_;  // per angle; empty without a bound
    KinematicsMeter given_;
    KinematicsMeter drawn_;
    std::deque<MixedFrame> frames_;  // of the window
    std::deque<Pose> poses_;         // theirs, as given
    size_t taken_ = 0;               // frames of the window that are gone
};

}  // namespace newscaster::motion
