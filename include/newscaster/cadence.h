// The quality-for-speed dial: which frames are drawn by the neural renderer (keyframes) and which
// are made from their neighbours. docs/cadence.md has the method and what it costs.
#pragma once

#include <cstdint>
#include <string_view>

#include "newscaster/export.h"

namespace newscaster {

// How an in-between frame is made.
enum class StrideMode {
    warp,  // the warp's outputs are blended from keyframes, the decoder draws: close to a keyframe
    frame  // decoded crops are blended along the motion of the keypoints: neither graph runs
};

struct CadenceOptions {
    // 1: every frame is a keyframe. 2, 3: at most that many frames from one keyframe to the next.
    // 0, adaptive: as few keyframes as the tolerances below allow. In all but 1, closures of the
    // lips and peaks of blinks are keyframes.
    int stride = 1;
    StrideMode mode = StrideMode::warp;

    // Of the adaptive stride. Lengths are shares of the crop's width (0.001 is half a pixel of a
    // crop of 512). Keyframes stand so close that the keypoints of the frames between them are
    // reproduced within `residual`, from keyframes no further than `spread` (weighted RMS).
    int longest_segment = 4;        // frames from one keyframe to the next, 1 .. 4
    double max_neural_share = 0.5;  // over some seconds; above it the tolerances are loosened
    double lips_residual = 0.0008;
    double lips_spread = 0.009;
    double eyes_residual = 0.0006;
    double eyes_spread = 0.0043;
    double other_residual = 0.002;
    double other_spread = 0.0234;
    // A closure or blink: the opening turns round by at least this much within three frames.
    double turn = 0.003;
    // An onset (plosive): the sound gets louder by this much from one frame to the next and reaches
    // the floor (dB below full scale).
    double onset_rise_db = 20.0;
    double onset_floor_db = -45.0;
};

// One frame of the plan.
struct CadenceFrame {
    int64_t index = 0;
    bool neural = true;
    // Why it is a keyframe: "first", "stride", "motion", "closure", "blink", "onset", "last"; empty
    // for frames in between.
    std::string_view reason;
    double level_db = 0.0;     // of the sound during the frame, relative to full scale
    double lip_opening = 0.0;  // height of the lips, in shares of the crop's width
    double lip_speed = 0.0;    // its change since the frame before
    double eye_opening = 0.0;  // height of the eyes
    int64_t key_before = 0;    // the keyframes around a frame in between; itself for a keyframe
    int64_t key_after = 0;
};

// Throws Error(bad_input) naming the field, the value found and the values wanted.
NEWSCASTER_EXPORT void check_cadence(const CadenceOptions& options);

}  // namespace newscaster
