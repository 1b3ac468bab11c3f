#include "motion/cadence_export.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <string>
#include <string_view>

#include "newscaster/error.h"

namespace newscaster::motion {

namespace {

namespace fs = std::filesystem;

// The picture: lines of kLineFrames frames, one below the other.
constexpr int64_t kLineFrames = 250;
constexpr int kFrameWidth = 4;
constexpr int kMargin = 60;
constexpr int kHeader = 40;
constexpr int kLineHeight = 150;
constexpr int kCurves = 90;  // height of the curves in a line
constexpr int kKeys = 20;    // height of the keyframe marks below them
constexpr double kQuietestDb = -60.0;
constexpr double kFastestLips = 0.03;  // shares of the crop's width per frame
constexpr double kWidestEyes = 0.04;

struct Reason {
    std::string_view name;
    std::string_view colour;
};
constexpr std::array<Reason, 7> kReasons{{{"first", "#333333"},
                                          {"last", "#333333"},
                                          {"stride", "#9e9e9e"},
                                          {"motion", "#e6761a"},
                                          {"closure", "#c2185b"},
                                          {"blink", "#1e66d0"},
                                          {"onset", "#2e8b57"}}};

std::string_view colour_of(std::string_view reason) {
    const auto found = std::ranges::find(kReasons, reason, &Reason::name);
    return found == kReasons.end() ? std::string_view("#333333") : found->colour;
}

std::string checked(const fs::path& file) {
    if (file.extension() != ".json") {
        throw Error(ErrorCode::bad_input,
                    fmt::format("cadence plan \"{}\": found another extension, wanted .json",
                                file.string()));
    }
    return file.string();
}

// Fixed width, so that it can be overwritten when the number of lines is known.
std::string picture_head(int64_t lines) {
    const int64_t width = 2 * kMargin + kLineFrames * kFrameWidth;
    const int64_t height = kHeader + std::max<int64_t>(lines, 1) * kLineHeight;
    return fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1:012}\" "
        "viewBox=\"0 0 {0} {1:012}\" font-family=\"sans-serif\" font-size=\"11\">\n",
        width, height);
}

std::string legend() {
    std::string text = "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
    int x = kMargin;
    const auto entry = [&](std::string_view colour, std::string_view name, int width) {
        text += fmt::format(
            "<rect x=\"{}\" y=\"14\" width=\"10\" height=\"10\" fill=\"{}\"/>"
            "<text x=\"{}\" y=\"23\">{}</text>\n",
            x, colour, x + 14, name);
        x += width;
    };
    entry("#d9d9d9", "level of the sound", 130);
    entry("#f0a860", "speed of the lips", 120);
    entry("#7aa7e6", "opening of the eyes", 150);
    for (const auto& [name, colour] : kReasons) {
        if (name != "last") entry(colour, name == "first" ? "first, last" : name, 80);
    }
    return text;
}

std::string points(const std::vector<CadenceFrame>& line, int bottom,
                   const std::function<double(const CadenceFrame&)>& height) {
    std::string text;
    for (size_t i = 0; i < line.size(); ++i) {
        const double x = kMargin + (static_cast<double>(i) + 0.5) * kFrameWidth;
        const double y = bottom - kCurves * std::clamp(height(line[i]), 0.0, 1.0);
        text += fmt::format("{:.0f},{:.1f} ", x, y);
    }
    return text;
}

}  // namespace

CadenceExporter::CadenceExporter(const fs::path& file, const CadenceOptions& options, Rational fps)
    : fps_(fps.to_double()),
      json_(checked(file)),
      picture_(fs::path(file).replace_extension(".svg")) {
    json_.append(fmt::format(
        "{{\n\"format\": \"newscaster-cadence\",\n\"schema_version\": 1,\n"
        "\"stride\": {},\n\"mode\": \"{}\",\n\"frame_rate\": \"{}/{}\",\n"
        "\"frames\": [",
        options.stride, options.mode == StrideMode::warp ? "warp" : "frame", fps.num, fps.den));
    picture_.append(picture_head(0));
    picture_.append(legend());
}

void CadenceExporter::write(const CadenceFrame& frame) {
    json_.append(fmt::format(
        "{}\n{{\"index\": {}, \"neural\": {}, \"reason\": \"{}\", \"level_db\": {:.2f}, "
        "\"lip_opening\": {:.6f}, \"lip_speed\": {:.6f}, \"eye_opening\": {:.6f}, "
        "\"key_before\": {}, \"key_after\": {}}}",
        frames_ == 0 ? "" : ",", frame.index, frame.neural, frame.reason, frame.level_db,
        frame.lip_opening, frame.lip_speed, frame.eye_opening, frame.key_before, frame.key_after));
    ++frames_;
    if (frame.neural) ++keyframes_;
    line_.push_back(frame);
    if (static_cast<int64_t>(line_.size()) == kLineFrames) draw_line();
}

void CadenceExporter::draw_line() {
    const int top = kHeader + static_cast<int>(lines_) * kLineHeight;
    const int bottom = top + kCurves;
    const auto last = static_cast<int64_t>(line_.size());
    std::string text = fmt::format(
        "<polygon fill=\"#d9d9d9\" points=\"{},{} {}{},{}\"/>\n", kMargin, bottom,
        points(line_, bottom, [](const CadenceFrame& f) { return 1.0 - f.level_db / kQuietestDb; }),
        kMargin + last * kFrameWidth, bottom);
    text += fmt::format("<polyline fill=\"none\" stroke=\"#f0a860\" points=\"{}\"/>\n",
                        points(line_, bottom, [](const CadenceFrame& f) {
                            return std::abs(f.lip_speed) / kFastestLips;
                        }));
    text += fmt::format(
        "<polyline fill=\"none\" stroke=\"#7aa7e6\" points=\"{}\"/>\n",
        points(line_, bottom, [](const CadenceFrame& f) { return f.eye_opening / kWidestEyes; }));
    for (size_t i = 0; i < line_.size(); ++i) {
        const int64_t x = kMargin + static_cast<int64_t>(i) * kFrameWidth;
        const CadenceFrame& frame = line_[i];
        if (frame.neural) {
            text +=
                fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"/>\n", x,
                            bottom + 4, kFrameWidth - 1, kKeys, colour_of(frame.reason));
        }
        const double second = std::floor(static_cast<double>(frame.index) / fps_);
        const bool starts = frame.index == static_cast<int64_t>(std::ceil(second * fps_));
        if (starts) {
            text += fmt::format("<text x=\"{}\" y=\"{}\">{:.0f} s</text>\n", x, bottom + kKeys + 18,
                                second);
        }
    }
    picture_.append(text);
    line_.clear();
    ++lines_;
}

void CadenceExporter::finish() {
    if (!line_.empty()) draw_line();
    picture_.append("</svg>\n");
    picture_.patch(0, picture_head(lines_));
    json_.append(fmt::format("\n],\n\"neural_frames\": {},\n\"in_between_frames\": {}\n}}\n",
                             keyframes_, frames_ - keyframes_));
    picture_.commit();
    json_.commit();
}

}  // namespace newscaster::motion
