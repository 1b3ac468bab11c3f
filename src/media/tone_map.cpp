#include "media/tone_map.h"

extern "C" {
#include <libavutil/mastering_display_metadata.h>
}

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace newscaster::media {

namespace {

using Rgb = std::array<double, 3>;

constexpr double kWhiteNit = 203.0;     // BT.2408, table 1
constexpr double kHlgPeakNit = 1000.0;  // the screen that HLG is shown on
constexpr double kDisplayGamma = 2.4;   // BT.1886
constexpr double kKnee = 0.8;           // of the SDR signal
constexpr double kLeastPeakNit = kWhiteNit;
constexpr double kMostPeakNit = 10'000.0;
constexpr size_t kCurveNodes = 8192;
// Of light in reference whites: 10000 nit, and what a change of primaries may add to a channel.
constexpr double kMostLight = 10'000.0 / 203.0 * 1.7;

// BT.2100, table 4.
double pq_nit(double signal) {
    constexpr double m1 = 2610.0 / 16384.0;
    constexpr double m2 = 2523.0 / 4096.0 * 128.0;
    constexpr double c1 = 3424.0 / 4096.0;
    constexpr double c2 = 2413.0 / 4096.0 * 32.0;
    constexpr double c3 = 2392.0 / 4096.0 * 32.0;
    const double power = std::pow(signal, 1.0 / m2);
    return 10'000.0 * std::pow(std::max(power - c1, 0.0) / (c2 - c3 * power), 1.0 / m1);
}

// BT.2100, table 5: scene light 0..1.
double hlg_scene(double signal) {
    constexpr double a = 0.17883277;
    constexpr double b = 1.0 - 4.0 * a;
    const double c = 0.5 - a * std::log(4.0 * a);
    return signal <= 0.5 ? signal * signal / 3.0 : (std::exp((signal - c) / a) + b) / 12.0;
}

// PQ: display light in reference whites; HLG: scene light 0..1.
double light_of(HdrTransfer transfer, double signal) {
    return transfer == HdrTransfer::pq ? pq_nit(signal) / kWhiteNit : hlg_scene(signal);
}

// Linear light to the primaries of BT.709; all of them have the white D65. BT.2087, annex 2, and
// the same computation from the chromaticities of SMPTE RP 431-2.
template <typename Value>
using Rows = std::array<std::array<Value, 3>, 3>;

template <typename Value>
constexpr Rows<Value> kFromBt2020{{{Value(1.6605), Value(-0.5876), Value(-0.0728)},
                                   {Value(-0.1246), Value(1.1329), Value(-0.0083)},
                                   {Value(-0.0182), Value(-0.1006), Value(1.1187)}}};
template <typename Value>
constexpr Rows<Value> kFromP3{{{Value(1.2249), Value(-0.2247), Value(-0.0002)},
                               {Value(-0.0420), Value(1.0419), Value(0.0001)},
                               {Value(-0.0196), Value(-0.0786), Value(1.0982)}}};

template <typename Value>
Value weighted(const std::array<Value, 3>& weights, const std::array<Value, 3>& rgb) {
    return weights[0] * rgb[0] + weights[1] * rgb[1] + weights[2] * rgb[2];
}

template <typename Value>
std::array<Value, 3> times(const Rows<Value>& rows, const std::array<Value, 3>& rgb) {
    return {weighted(rows[0], rgb), weighted(rows[1], rgb), weighted(rows[2], rgb)};
}

// Colours that BT.709 has not move towards the grey of the same luminance until it has them.
template <typename Value>
void into_gamut(std::array<Value, 3>& light) {
    const Value least = std::ranges::min(light);
    if (least >= Value(0)) return;
    constexpr std::array<Value, 3> kLuminance{Value(0.2126), Value(0.7152), Value(0.0722)};
    const Value grey = std::max(weighted(kLuminance, light), Value(0));
    const Value share = grey / (grey - least);
    for (Value& value : light) value = std::max(Value(0), grey + share * (value - grey));
}

// Display light in reference whites and BT.709's primaries of what light_of gives.
template <typename Value>
std::array<Value, 3> displayed(const HdrColours& colours, std::array<Value, 3> light) {
    if (colours.transfer == HdrTransfer::hlg) {
        // The OOTF: gamma 1.2 on the luminance.
        constexpr std::array<Value, 3> kLuminance{Value(0.2627), Value(0.6780), Value(0.0593)};
        const Value gain =
            std::pow(weighted(kLuminance, light), Value(0.2)) * Value(kHlgPeakNit / kWhiteNit);
        for (Value& value : light) value *= gain;
    }
    if (colours.primaries == Primaries::bt2020) light = times(kFromBt2020<Value>, light);
    if (colours.primaries == Primaries::p3_d65) light = times(kFromP3<Value>, light);
    into_gamut(light);
    return light;
}

// SDR signal 0..1 of a signal that may be above 1, up to `peak`.
double compressed(double signal, double peak) {
    if (signal <= kKnee) return signal;
    const double room = 1.0 - kKnee;
    const double white = std::max((peak - kKnee) / room, 1.0);
    const double t = std::min((signal - kKnee) / room, white);
    return kKnee + room * t * (1.0 + t / (white * white)) / (1.0 + t);
}

double encoded(double light) {
    return std::pow(light, 1.0 / kDisplayGamma);
}

double mastering_peak(const AVFrame& frame) {
    const AVFrameSideData* light =
        av_frame_get_side_data(&frame, AV_FRAME_DATA_CONTENT_LIGHT_LEVEL);
    if (light != nullptr) {
        const auto* level = reinterpret_cast<const AVContentLightMetadata*>(light->data);
        if (level->MaxCLL > 0) return level->MaxCLL;
    }
    const AVFrameSideData* screen =
        av_frame_get_side_data(&frame, AV_FRAME_DATA_MASTERING_DISPLAY_METADATA);
    if (screen != nullptr) {
        const auto* display = reinterpret_cast<const AVMasteringDisplayMetadata*>(screen->data);
        if (display->has_luminance != 0 && display->max_luminance.den != 0) {
            return av_q2d(display->max_luminance);
        }
    }
    return kHlgPeakNit;
}

}  // namespace

bool is_hdr(const AVFrame& frame) {
    return frame.color_trc == AVCOL_TRC_SMPTE2084 || frame.color_trc == AVCOL_TRC_ARIB_STD_B67;
}

HdrColours hdr_colours_of(const AVFrame& frame) {
    HdrColours colours;
    colours.transfer =
        frame.color_trc == AVCOL_TRC_ARIB_STD_B67 ? HdrTransfer::hlg : HdrTransfer::pq;
    if (frame.color_primaries == AVCOL_PRI_BT709) colours.primaries = Primaries::bt709;
    if (frame.color_primaries == AVCOL_PRI_SMPTE432) colours.primaries = Primaries::p3_d65;
    if (colours.transfer == HdrTransfer::pq) {
        colours.peak_nit = std::clamp(mastering_peak(frame), kLeastPeakNit, kMostPeakNit);
    }
    return colours;
}

std::array<double, 3> tone_mapped(const HdrColours& colours, const std::array<double, 3>& signal) {
    Rgb light{};
    for (size_t c = 0; c < 3; ++c) light[c] = light_of(colours.transfer, signal[c]);
    light = displayed(colours, light);
    const double most = encoded(std::ranges::max(light));
    if (!(most > 0.0)) return {};
    const double gain = compressed(most, encoded(colours.peak_nit / kWhiteNit)) / most;
    for (double& value : light) value = encoded(value) * gain;  // a power keeps ratios
    return light;
}

ToneMap::ToneMap(const HdrColours& colours)
    : colours_(colours), light_(65536), curves_(kCurveNodes) {
    for (size_t i = 0; i < light_.size(); ++i) {
        light_[i] =
            static_cast<float>(light_of(colours.transfer, static_cast<double>(i) / 65535.0));
    }
    const double peak = encoded(colours.peak_nit / kWhiteNit);
    for (size_t i = 0; i < kCurveNodes; ++i) {
        const double root = static_cast<double>(i) / (kCurveNodes - 1) * std::sqrt(kMostLight);
        const double signal = encoded(root * root);
        curves_[i].level = static_cast<float>(255.0 * signal);
        curves_[i].gain = i == 0 ? 1.0F : static_cast<float>(compressed(signal, peak) / signal);
    }
}

ToneMap::Curve ToneMap::curve_at(float light) const {
    static const float kScale = static_cast<float>((kCurveNodes - 1) / std::sqrt(kMostLight));
    const float position = std::sqrt(light) * kScale;
    const size_t node = std::min(static_cast<size_t>(position), kCurveNodes - 2);
    const float share = position - static_cast<float>(node);
    const Curve& a = curves_[node];
    const Curve& b = curves_[node + 1];
    return {a.level + share * (b.level - a.level), a.gain + share * (b.gain - a.gain)};
}

void ToneMap::apply(std::span<const uint16_t> rgb, std::span<uint8_t> target) const {
    for (size_t pixel = 0; pixel + 2 < rgb.size(); pixel += 3) {
        const std::array<float, 3> light = displayed<float>(
            colours_, {light_[rgb[pixel]], light_[rgb[pixel + 1]], light_[rgb[pixel + 2]]});
        const std::array<Curve, 3> curves{curve_at(light[0]), curve_at(light[1]),
                                          curve_at(light[2])};
        // The gain falls with the light: that of the largest channel is the least.
        const float gain = std::min({curves[0].gain, curves[1].gain, curves[2].gain});
        for (size_t c = 0; c < 3; ++c) {
            const float rounded = std::min(curves.at(c).level * gain + 0.5F, 255.0F);
            target[pixel + c] = static_cast<uint8_t>(rounded);
        }
    }
}

}  // namespace newscaster::media
