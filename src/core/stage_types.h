// Plain values that stages hand to each other; the only types two stages share.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/tensor.h"

namespace newscaster {

// Mono audio at the pack's sample rate, in order, without gaps.
struct AudioChunk {
    int64_t first_sample = 0;
    std::vector<float> samples;  // [-1, 1]
};

// Audio features of consecutive video frames: [frames, feature_dims].
struct FeatureBlock {
    int64_t first_frame = 0;
    Tensor rows;
};

// Motion vectors of consecutive video frames in the pack's layout and units: [frames, motion dims].
struct MotionBlock {
    int64_t first_frame = 0;
    Tensor rows;
};

// What the renderer needs to draw one frame.
struct DrivingFrame {
    int64_t index = 0;             // video frame
    int64_t source_frame = 0;      // avatar frame it is drawn from
    std::vector<float> keypoints;  // driving keypoints [K*3]: x right, y down, z into the picture
};

// 2x3 affine map on continuous pixel coordinates (pixel centres at +0.5), row-major:
// x' = m[0]*x + m[1]*y + m[2];  y' = m[3]*x + m[4]*y + m[5].
using Affine = std::array<double, 6>;

// Axis-aligned pixel box [x0, x1) x [y0, y1).
struct Box {
    int x0 = 0;
    int y0 = 0;
    int x1 = 0;
    int y1 = 0;

    [[nodiscard]] int width() const { return x1 - x0; }
    [[nodiscard]] int height() const { return y1 - y0; }
    friend bool operator==(const Box&, const Box&) = default;
};

// 8-bit interleaved RGB picture, full range, sRGB primaries.
struct RgbImage {
    int width = 0;
    int height = 0;
    std::vector<uint8_t> pixels;  // height * width * 3
};

// An NV12 picture that owns its planes (BT.709 limited); width and height even.
struct Nv12Image {
    int width = 0;
    int height = 0;
    std::vector<uint8_t> y;   // height * width
    std::vector<uint8_t> uv;  // height/2 * width
};

}  // namespace newscaster
