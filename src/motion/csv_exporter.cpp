#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <numbers>

#include "motion/exporters.h"
#include "motion/gaze.h"
#include "newscaster/error.h"

namespace newscaster::motion {

namespace {

// Order of a Live Link Face take; Apple's documentation lists the same 52 coefficients in another.
constexpr std::array<std::string_view, 52> kArkitColumns{"EyeBlinkLeft",
                                                         "EyeLookDownLeft",
                                                         "EyeLookInLeft",
                                                         "EyeLookOutLeft",
                                                         "EyeLookUpLeft",
                                                         "EyeSquintLeft",
                                                         "EyeWideLeft",
                                                         "EyeBlinkRight",
                                                         "EyeLookDownRight",
                                                         "EyeLookInRight",
                                                         "EyeLookOutRight",
                                                         "EyeLookUpRight",
                                                         "EyeSquintRight",
                                                         "EyeWideRight",
                                                         "JawForward",
                                                         "JawRight",
                                                         "JawLeft",
                                                         "JawOpen",
                                                         "MouthClose",
                                                         "MouthFunnel",
                                                         "MouthPucker",
                                                         "MouthRight",
                                                         "MouthLeft",
                                                         "MouthSmileLeft",
                                                         "MouthSmileRight",
                                                         "MouthFrownLeft",
                                                         "MouthFrownRight",
                                                         "MouthDimpleLeft",
                                                         "MouthDimpleRight",
                                                         "MouthStretchLeft",
                                                         "MouthStretchRight",
                                                         "MouthRollLower",
                                                         "MouthRollUpper",
                                                         "MouthShrugLower",
                                                         "MouthShrugUpper",
                                                         "MouthPressLeft",
                                                         "MouthPressRight",
                                                         "MouthLowerDownLeft",
                                                         "MouthLowerDownRight",
                                                         "MouthUpperUpLeft",
                                                         "MouthUpperUpRight",
                                                         "BrowDownLeft",
                                                         "BrowDownRight",
                                                         "BrowInnerUp",
                                                         "BrowOuterUpLeft",
                                                         "BrowOuterUpRight",
                                                         "CheekPuff",
                                                         "CheekSquintLeft",
                                                         "CheekSquintRight",
                                                         "NoseSneerLeft",
                                                         "NoseSneerRight",
                                                         "TongueOut"};
constexpr std::array<std::string_view, 9> kAngleColumns{
    "HeadYaw",     "HeadPitch",   "HeadRoll",      "LeftEyeYaw",  "LeftEyePitch",
    "LeftEyeRoll", "RightEyeYaw", "RightEyePitch", "RightEyeRoll"};

double radians(double degrees) {
    return degrees * std::numbers::pi / 180.0;
}

// "eyeBlinkLeft" (ARKit) -> "EyeBlinkLeft" (column).
std::string column_name(std::string channel) {
    if (!channel.empty()) {
        channel[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(channel[0])));
    }
    return channel;
}

// hh:mm:ss:ff.000, counting whole frames; 30000/1001 counts 30 frames a second, non-drop.
std::string timecode(int64_t frame, Rational fps) {
    const int64_t rate = std::max<int64_t>(1, std::llround(fps.to_double()));
    const int64_t seconds = frame / rate;
    return fmt::format("{:02}:{:02}:{:02}:{:02}.000", seconds / 3600, seconds / 60 % 60,
                       seconds % 60, frame % rate);
}

}  // namespace

CsvExporter::CsvExporter(const std::filesystem::path& file, const pack::Manifest& manifest)
    : spec_(manifest.motion), frame_rate_(manifest.frame_rate), file_(file) {
    const auto* span = spec_.find(pack::SpanKind::blendshapes);
    if (span == nullptr) {
        throw Error(ErrorCode::bad_input,
                    fmt::format("{}: pack {} has no blendshapes, which .csv needs; wanted .json or "
                                ".npz",
                                file.string(), manifest.name));
    }
    std::string header = "Timecode,BlendShapeCount";
    for (const auto column : kArkitColumns) {
        const auto found =
            std::find_if(span->channels.begin(), span->channels.end(),
                         [&](const auto& channel) { return column_name(channel) == column; });
        column_dims_.push_back(
            found == span->channels.end() ? -1 : span->offset + (found - span->channels.begin()));
        header.append(",").append(column);
    }
    for (const auto column : kAngleColumns) header.append(",").append(column);
    file_.append(header + "\n");
}

double CsvExporter::channel(std::span<const float> motion, std::string_view name) const {
    const auto column = std::find(kArkitColumns.begin(), kArkitColumns.end(), name);
    const int64_t dim = column_dims_.at(static_cast<size_t>(column - kArkitColumns.begin()));
    return dim < 0 ? 0.0 : motion[static_cast<size_t>(dim)];
}

double CsvExporter::angle_deg(std::span<const float> motion, pack::SpanKind kind) const {
    const auto* span = spec_.find(kind);
    return span == nullptr ? 0.0 : motion[static_cast<size_t>(span->offset)] - span->neutral;
}

void CsvExporter::write(int64_t frame, std::span<const float> motion) {
    require_row(frame, next_frame_, motion, spec_.dims);
    const auto look = [&](std::string_view positive, std::string_view negative) {
        return radians(kEyeLookFullDeg * (channel(motion, positive) - channel(motion, negative)));
    };
    // ARKit's face axes are the composer's turned by 180 degrees about x: yaw and roll change sign.
    const std::array<double, 9> angles{radians(-angle_deg(motion, pack::SpanKind::yaw_deg)),
                                       radians(angle_deg(motion, pack::SpanKind::pitch_deg)),
                                       radians(-angle_deg(motion, pack::SpanKind::roll_deg)),
                                       look("EyeLookOutLeft", "EyeLookInLeft"),
                                       look("EyeLookDownLeft", "EyeLookUpLeft"),
                                       0.0,
                                       look("EyeLookInRight", "EyeLookOutRight"),
                                       look("EyeLookDownRight", "EyeLookUpRight"),
                                       0.0};
    std::string line = fmt::format("{},{}", timecode(frame, frame_rate_),
                                   kArkitColumns.size() + kAngleColumns.size());
    for (const auto column : kArkitColumns) {
        fmt::format_to(std::back_inserter(line), ",{:.6f}", channel(motion, column));
    }
    for (const double angle : angles) fmt::format_to(std::back_inserter(line), ",{:.6f}", angle);
    file_.append(line + "\n");
    ++next_frame_;
}

void CsvExporter::finish() {
    file_.commit();
}

}  // namespace newscaster::motion
