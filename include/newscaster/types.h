// Plain types shared by every public header.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "newscaster/export.h"

namespace newscaster {

// Exact ratio; den > 0. Frame rates are frames per second, e.g. 25/1 or 30000/1001.
struct Rational {
    int64_t num = 0;
    int64_t den = 1;

    [[nodiscard]] double to_double() const {
        return static_cast<double>(num) / static_cast<double>(den);
    }
    friend bool operator==(const Rational& a, const Rational& b) {
        return a.num * b.den == b.num * a.den;
    }
};

// Number of video frames that cover `samples` of audio: ceil(samples * fps / sample_rate), exact.
[[nodiscard]] NEWSCASTER_EXPORT int64_t frames_covering(int64_t samples, int64_t sample_rate_hz,
                                                        Rational fps);

// One finished picture: NV12, BT.709, limited range. Width and height are even.
// Immutable once handed out; the memory lives as long as any shared_ptr to it.
struct VideoFrame {
    int64_t index = 0;         // 0-based frame number, the only clock: time = index / fps
    double timestamp_s = 0.0;  // index / fps
    int width = 0;
    int height = 0;
    const uint8_t* y = nullptr;   // height rows of y_stride bytes, luma
    const uint8_t* uv = nullptr;  // height/2 rows of uv_stride bytes, interleaved Cb, Cr
    int y_stride = 0;
    int uv_stride = 0;
};
using VideoFramePtr = std::shared_ptr<const VideoFrame>;

// How important a log line is.
enum class LogLevel { debug, info, warning, error };

// Receives log lines (without newline) from any thread; must be thread-safe. The library is silent
// unless the caller gives one.
using LogSink = std::function<void(LogLevel level, std::string_view line)>;

}  // namespace newscaster
