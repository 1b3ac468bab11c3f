// Generated motion -> the motion that is drawn: mixing with the source's, blinks, user controls,
// fades and gaze, in the order of docs/motion.md, "Mixing with the source".
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "motion/blink_schedule.h"
#include "motion/composer.h"
#include "motion/control_track.h"
#include "motion/pose_angles.h"
#include "pack/pack.h"

namespace newscaster::motion {

struct MixedFrame {
    int64_t index = 0;
    int64_t source = 0;
    PosedRow motion;
};

// Per-session state. Frames come out in order, as soon as nothing that the end of the track decides
// (a fade out, a blink that would be cut) can still touch them. Use from one thread at a time.
class MotionMixer {
  public:
    struct Options {
        ControlTrack controls;
        uint64_t seed = 0;
        // Scale of the character whose motion is borrowed over the avatar's own; pose and
        // expression follow it.
        double scale_ratio = 1.0;
    };

    // blink: [frames, K*3] of the pack's blink offsets, empty when it has none. sources as the
    // composer's; at least one.
    MotionMixer(const pack::Manifest& manifest, std::vector<float> blink,
                std::vector<SourcePose> sources, Options options);
    MotionMixer(const pack::Pack& pack, std::vector<SourcePose> sources, Options options);

    // Motion that relative driving subtracts, [dims]; without a call the first frame pushed.
    void set_reference(std::vector<float> row) { reference_ = std::move(row); }

    // Adds the next frame; returns those that are ready.
    std::vector<MixedFrame> push(std::span<const float> motion, int64_t source);
    // No more frames: returns the rest.
    std::vector<MixedFrame> finish();

  private:
    struct Waiting {
        int64_t source = 0;
        std::vector<float> motion;
    };
    MixedFrame mix_next(int64_t end);
    void mix_spans(PosedRow& posed, const std::vector<float>& rest) const;
    void mask_expression(PosedRow& posed, const std::vector<float>& rest, int64_t frame,
                         int64_t end);
    void apply_controls(PosedRow& posed, const FrameControls& controls) const;
    void offset_expression(PosedRow& posed, const FrameControls& controls) const;
    void fade(PosedRow& posed, const PosedRow& target, double alpha,
              const std::vector<std::string>& spans) const;
    void turn(PosedRow& posed, const PosedRow& before, double pose_share,
              const FrameControls& controls) const;
    [[nodiscard]] std::optional<double> fade_weight(int64_t frame, int64_t end,
                                                    const FrameControls& controls) const;
    [[nodiscard]] std::vector<float> rest_row(int64_t source) const;

    pack::MotionSpec spec_;
    ControlTrack controls_;
    std::vector<SourcePose> sources_;
    bool relative_ = false;
    bool drive_eyes_ = true;
    bool gaze_correction_ = true;
    std::vector<float> blink_;     // [frames, K*3] or empty
    std::vector<double> weights_;  // of the driving motion, per dim; 0: not driven
    std::vector<double> driven_;   // per expression dim: share of the driving expression
    std::vector<bool> blinking_;   // per expression dim: takes blink offsets
    std::vector<std::string> fade_spans_;
    BlinkSchedule blinks_;
    size_t holdback_ = 0;
    std::vector<float> reference_;
    std::optional<PosedRow> first_;  // first frame, before fades
    std::deque<Waiting> waiting_;
    int64_t next_ = 0;
};

}  // namespace newscaster::motion
