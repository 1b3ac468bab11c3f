#include "forensics/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace newscaster::forensics {

namespace {

constexpr int kWidth = 960;
constexpr int kLeft = 56;
constexpr int kRight = 12;
constexpr int kTop = 42;
constexpr int kHeight = 180;  // of the curves
constexpr int kBelow = 36;
constexpr int kMarks = 8;
constexpr std::array kColours{"#1f77b4", "#d95f02", "#2ca02c", "#7b4ab0", "#8c564b", "#555555"};

struct Range {
    double low = std::numeric_limits<double>::max();
    double high = std::numeric_limits<double>::lowest();
};

Range range_of(const Plot& plot) {
    Range range;
    for (const Curve& curve : plot.curves) {
        for (const auto& value : curve.values) {
            if (!value) continue;
            range.low = std::min(range.low, *value);
            range.high = std::max(range.high, *value);
        }
    }
    return range;
}

// Round steps of which four to eight fit.
double step_of(double span) {
    const double raw = span / 5.0;
    const double power = std::pow(10.0, std::floor(std::log10(raw)));
    for (const double factor : {1.0, 2.0, 5.0}) {
        if (raw <= factor * power) return factor * power;
    }
    return 10.0 * power;
}

class Drawing {
  public:
    Drawing(const Plot& plot, double fps, Range range)
        : plot_(plot), fps_(fps), step_(step_of(std::max(range.high - range.low, 1e-9))) {
        low_ = std::floor(range.low / step_) * step_;
        high_ = std::max(std::ceil(range.high / step_) * step_, low_ + step_);
        for (const Curve& curve : plot.curves) frames_ = std::max(frames_, curve.values.size());
    }

    std::string draw() {
        const int height = kTop + kHeight + (plot_.marks.empty() ? 0 : kMarks + 6) + kBelow;
        std::string text = fmt::format(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 "
            "{0} {1}\" font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"100%\" "
            "height=\"100%\" fill=\"white\"/>\n<text x=\"{2}\" y=\"16\" font-size=\"13\" "
            "font-weight=\"bold\">{3}</text>\n",
            kWidth, height, kLeft,
            escaped(plot_.unit.empty() ? plot_.title : plot_.title + " [" + plot_.unit + "]"));
        text += legend() + grid();
        for (size_t i = 0; i < plot_.curves.size(); ++i) text += curve(plot_.curves[i], i);
        return text + marks() + "</svg>\n";
    }

  private:
    [[nodiscard]] double x_of(double frame) const {
        const auto last = static_cast<double>(std::max<size_t>(frames_, 2) - 1);
        return kLeft + frame / last * (kWidth - kLeft - kRight);
    }
    [[nodiscard]] double y_of(double value) const {
        return kTop + (high_ - value) / (high_ - low_) * kHeight;
    }

    [[nodiscard]] std::string legend() const {
        std::string text;
        int x = kLeft;
        const auto entry = [&](const std::string& name, const char* colour) {
            text += fmt::format(
                "<rect x=\"{}\" y=\"24\" width=\"12\" height=\"4\" fill=\"{}\"/><text x=\"{}\" "
                "y=\"30\">{}</text>\n",
                x, colour, x + 16, escaped(name));
            x += 34 + 7 * static_cast<int>(name.size());
        };
        for (size_t i = 0; i < plot_.curves.size(); ++i) {
            entry(plot_.curves[i].name, kColours.at(i % kColours.size()));
        }
        if (!plot_.marks.empty()) entry(plot_.mark_name, "#999999");
        return text;
    }

    [[nodiscard]] std::string grid() const {
        std::string text;
        const auto lines = static_cast<int>(std::lround((high_ - low_) / step_));
        for (int i = 0; i <= lines; ++i) {
            const double value = low_ + i * step_;
            text += fmt::format(
                "<line x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\" stroke=\"#dddddd\"/>"
                "<text x=\"{3}\" y=\"{4:.1f}\" text-anchor=\"end\">{5:.6g}</text>\n",
                kLeft, kWidth - kRight, y_of(value), kLeft - 5, y_of(value) + 4, value);
        }
        if (fps_ <= 0.0) return text;
        const double seconds = static_cast<double>(frames_) / fps_;
        const double step = seconds > 10.0 ? step_of(seconds) : 1.0;
        const int below = kTop + kHeight + (plot_.marks.empty() ? 0 : kMarks + 6) + 16;
        for (int i = 0; i * step * fps_ < static_cast<double>(frames_); ++i) {
            text +=
                fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{:.6g} s</text>\n",
                            x_of(i * step * fps_), below, i * step);
        }
        return text;
    }

    [[nodiscard]] std::string curve(const Curve& curve, size_t index) const {
        std::string text;
        std::string line;
        const char* colour = kColours.at(index % kColours.size());
        const auto close = [&] {
            if (!line.empty()) {
                text += fmt::format(
                    "<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"1.3\" points=\"{}\"/>\n",
                    colour, line);
            }
            line.clear();
        };
        for (size_t i = 0; i < curve.values.size(); ++i) {
            const auto& value = curve.values[i];
            if (!value) {
                close();
                continue;
            }
            const bool alone = (i == 0 || !curve.values[i - 1]) &&
                               (i + 1 == curve.values.size() || !curve.values[i + 1]);
            const double x = x_of(static_cast<double>(i));
            if (alone) {
                text += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"1.6\" fill=\"{}\"/>\n",
                                    x, y_of(*value), colour);
            } else {
                line += fmt::format("{:.1f},{:.1f} ", x, y_of(*value));
            }
        }
        close();
        return text;
    }

    [[nodiscard]] std::string marks() const {
        std::string text;
        for (size_t i = 0; i < plot_.marks.size(); ++i) {
            if (!plot_.marks[i]) continue;
            text += fmt::format(
                "<rect x=\"{:.1f}\" y=\"{}\" width=\"1.5\" height=\"{}\" fill=\"#999999\"/>\n",
                x_of(static_cast<double>(i)) - 0.75, kTop + kHeight + 4, kMarks);
        }
        return text;
    }

    const Plot& plot_;
    double fps_;
    double step_;
    double low_ = 0.0;
    double high_ = 0.0;
    size_t frames_ = 0;
};

}  // namespace

std::string to_svg(const Plot& plot, double fps) {
    const Range range = range_of(plot);
    if (range.low > range.high) return "";
    return Drawing(plot, fps, range).draw();
}

std::string escaped(const std::string& text) {
    std::string result;
    for (const char c : text) {
        switch (c) {
            case '&':
                result += "&amp;";
                break;
            case '<':
                result += "&lt;";
                break;
            case '>':
                result += "&gt;";
                break;
            case '"':
                result += "&quot;";
                break;
            default:
                result += c;
        }
    }
    return result;
}

}  // namespace newscaster::forensics
