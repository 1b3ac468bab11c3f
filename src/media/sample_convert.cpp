#include "media/sample_convert.h"

#include <fmt/format.h>

extern "C" {
#include <libavutil/frame.h>
#include <libavutil/samplefmt.h>
}

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "newscaster/error.h"

namespace newscaster::media {

namespace {

float to_float(uint8_t value) {
    return (static_cast<float>(value) - 128.0F) / 128.0F;
}
float to_float(int16_t value) {
    return static_cast<float>(value) / 32768.0F;
}
float to_float(int32_t value) {
    return static_cast<float>(static_cast<double>(value) / 2147483648.0);
}
float to_float(int64_t value) {
    return static_cast<float>(static_cast<double>(value) / 9223372036854775808.0);
}
float to_float(float value) {
    return value;
}
float to_float(double value) {
    constexpr double kMax = std::numeric_limits<float>::max();
    return static_cast<float>(std::isfinite(value) ? std::clamp(value, -kMax, kMax) : value);
}

template <typename T>
void convert(const AVFrame& frame, bool planar, float* target) {
    const auto channels = static_cast<size_t>(frame.ch_layout.nb_channels);
    const auto count = static_cast<size_t>(frame.nb_samples);
    if (!planar) {
        const auto* source = reinterpret_cast<const T*>(frame.extended_data[0]);
        std::transform(source, source + count * channels, target,
                       [](T value) { return to_float(value); });
        return;
    }
    for (size_t c = 0; c < channels; ++c) {
        const auto* source = reinterpret_cast<const T*>(frame.extended_data[c]);
        for (size_t i = 0; i < count; ++i) target[i * channels + c] = to_float(source[i]);
    }
}

}  // namespace

void append_interleaved(const AVFrame& frame, std::vector<float>& samples) {
    const size_t start = samples.size();
    samples.resize(start + static_cast<size_t>(frame.nb_samples) *
                               static_cast<size_t>(frame.ch_layout.nb_channels));
    float* target = samples.data() + start;
    const auto format = static_cast<AVSampleFormat>(frame.format);
    const bool planar = av_sample_fmt_is_planar(format) != 0;
    switch (av_get_packed_sample_fmt(format)) {
        case AV_SAMPLE_FMT_U8:
            return convert<uint8_t>(frame, planar, target);
        case AV_SAMPLE_FMT_S16:
            return convert<int16_t>(frame, planar, target);
        case AV_SAMPLE_FMT_S32:
            return convert<int32_t>(frame, planar, target);
        case AV_SAMPLE_FMT_S64:
            return convert<int64_t>(frame, planar, target);
        case AV_SAMPLE_FMT_FLT:
            return convert<float>(frame, planar, target);
        case AV_SAMPLE_FMT_DBL:
            return convert<double>(frame, planar, target);
        default:
            break;
    }
    throw Error(ErrorCode::bad_input,
                fmt::format("sample format {} of the sound is not known", frame.format));
}

std::optional<size_t> first_not_finite(std::span<const float> samples) {
    const auto found = std::find_if(samples.begin(), samples.end(),
                                    [](float value) { return !std::isfinite(value); });
    if (found == samples.end()) return std::nullopt;
    return static_cast<size_t>(found - samples.begin());
}

}  // namespace newscaster::media
