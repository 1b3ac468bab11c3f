#include <fmt/format.h>

#include <array>
#include <string_view>

#include "core/file.h"
#include "forensics/report.h"

namespace newscaster::forensics {

namespace {

using nlohmann::json;

constexpr std::string_view kStyle =
    "body{font-family:sans-serif;margin:24px auto;max-width:1040px;color:#222}"
    "table{border-collapse:collapse;margin:12px 0}td,th{border:1px solid #ccc;padding:4px 10px;"
    "text-align:right}th:first-child,td:first-child{text-align:left}img{max-width:100%;border:1px "
    "solid #ccc}h2{margin-top:32px}.note{color:#555;font-size:14px}";

std::string base64(const std::vector<std::byte>& bytes) {
    constexpr std::string_view kDigits =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string text;
    text.reserve((bytes.size() + 2) / 3 * 4);
    for (size_t i = 0; i < bytes.size(); i += 3) {
        const size_t count = std::min<size_t>(3, bytes.size() - i);
        uint32_t group = 0;
        for (size_t k = 0; k < 3; ++k) {
            group = group << 8U | (k < count ? std::to_integer<uint32_t>(bytes[i + k]) : 0U);
        }
        for (size_t k = 0; k < 4; ++k) {
            text += k <= count ? kDigits[group >> (18U - 6U * k) & 63U] : '=';
        }
    }
    return text;
}

std::string picture(const std::filesystem::path& file, const std::string& caption) {
    if (file.empty()) return "";
    return fmt::format(
        "<p class=\"note\">{}</p>\n<img alt=\"{}\" src=\"data:image/png;base64,{}\">\n",
        escaped(caption), escaped(caption), base64(read_file(file)));
}

std::string cell(const json& summary, const std::string& name, int digits) {
    const auto found = summary.find(name);
    if (found == summary.end()) return "<td>-</td>";
    if (found->is_null()) return "<td>equal</td>";
    return fmt::format("<td>{:.{}f}</td>", found->get<double>(), digits);
}

std::string table(const Measured& measured, const json& summary) {
    struct Row {
        const char* title;
        const char* key;  // without the test's name
        int digits;
    };
    constexpr std::array kRows{Row{"canvas PSNR, luma, dB", "canvas_psnr", 2},
                               Row{"canvas PSNR, RGB, dB", "canvas_rgb_psnr", 2},
                               Row{"canvas SSIM", "canvas_ssim", 5},
                               Row{"mouth PSNR, dB", "mouth_psnr", 2},
                               Row{"mouth SSIM", "mouth_ssim", 5},
                               Row{"eyes PSNR, dB", "eyes_psnr", 2},
                               Row{"eyes SSIM", "eyes_ssim", 5},
                               Row{"colour step across the seam, dE2000", "seam_de2000", 2},
                               Row{"colour step beside the seam, dE2000", "seam_beside_de2000", 2},
                               Row{"chroma phase, x, pixels", "chroma_phase_x", 3},
                               Row{"chroma phase, y, pixels", "chroma_phase_y", 3}};
    std::string text = "<table><tr><th></th>";
    for (const TestMeasures& test : measured.tests) {
        text += fmt::format("<th colspan=\"2\">{}</th>", escaped(test.name));
    }
    text += "</tr>\n<tr><th></th>";
    for (size_t i = 0; i < measured.tests.size(); ++i) text += "<th>mean</th><th>worst</th>";
    text += "</tr>\n";
    for (const Row& row : kRows) {
        const std::string first = fmt::format("{}_{}", row.key, measured.tests.front().name);
        if (!summary.contains(first)) continue;
        text += fmt::format("<tr><td>{}</td>", row.title);
        for (const TestMeasures& test : measured.tests) {
            const std::string key = fmt::format("{}_{}", row.key, test.name);
            text += cell(summary, key, row.digits) + cell(summary, key + "_worst", row.digits);
        }
        text += "</tr>\n";
    }
    text += "<tr><td>frames without any difference</td>";
    for (const TestMeasures& test : measured.tests) {
        text += fmt::format("<td colspan=\"2\">{}</td>",
                            summary.at("equal_frames_" + test.name).get<int64_t>());
    }
    return text + "</tr></table>\n";
}

using Value = std::optional<double> (*)(const FrameMeasures&);

std::string metric_plot(const Measured& measured, const Tracks& tracks, const char* title,
                        const char* unit, Value value) {
    Plot plot{title, unit, {}, tracks.keyframes, "keyframe"};
    for (const TestMeasures& test : measured.tests) {
        Curve curve{test.name, {}};
        for (const FrameMeasures& frame : test.frames) curve.values.push_back(value(frame));
        plot.curves.push_back(std::move(curve));
    }
    return to_svg(plot, measured.format.fps.to_double());
}

std::string halo_plot(const Measured& measured, const json& summary) {
    Plot plot{
        "Halo: mean luma difference by distance from the border (8 pixels inside to 8 outside)",
        "levels",
        {},
        {},
        ""};
    for (const TestMeasures& test : measured.tests) {
        const auto found = summary.find("halo_" + test.name);
        if (found == summary.end()) return "";
        Curve curve{test.name, {}};
        for (const json& value : *found) curve.values.emplace_back(value.get<double>());
        plot.curves.push_back(std::move(curve));
    }
    return to_svg(plot, 0.0);
}

std::string plots(const Measured& measured, const json& summary, const Tracks& tracks) {
    std::string text = metric_plot(measured, tracks, "Canvas PSNR, luma", "dB",
                                   [](const FrameMeasures& m) { return m.canvas.psnr_db; });
    text += metric_plot(measured, tracks, "Mouth PSNR", "dB", [](const FrameMeasures& m) {
        return m.mouth ? m.mouth->psnr_db : std::nullopt;
    });
    text += metric_plot(measured, tracks, "Eyes PSNR", "dB", [](const FrameMeasures& m) {
        return m.eyes ? m.eyes->psnr_db : std::nullopt;
    });
    for (const Plot& plot : tracks.plots) text += to_svg(plot, measured.format.fps.to_double());
    text += metric_plot(measured, {}, "Colour step across the seam", "dE2000",
                        [](const FrameMeasures& m) {
                            return m.seam ? std::optional(m.seam->across_mean) : std::nullopt;
                        });
    return text + halo_plot(measured, summary);
}

}  // namespace

std::string to_html(const Measured& measured, const json& report, const Tracks& tracks,
                    const std::vector<Exhibit>& exhibits) {
    const json& summary = report.at("summary");
    std::string text = fmt::format(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>newscaster "
        "forensics</title><style>{}</style></head><body>\n<h1>Forensics</h1>\n<p>Reference: {} "
        "({}x{}, {:.6g} frames/s, {} frames)</p>\n<ul>\n",
        kStyle, escaped(report.at("reference").get<std::string>()), measured.format.width,
        measured.format.height, measured.format.fps.to_double(), measured.frames());
    for (const TestMeasures& test : measured.tests) {
        text += fmt::format("<li>{}: {}</li>\n", escaped(test.name), escaped(test.file));
    }
    text += fmt::format("</ul>\n<p class=\"note\">Regions: {}</p>\n<h2>Summary</h2>\n{}",
                        escaped(report.at("regions").at("origin").get<std::string>()),
                        table(measured, summary));
    text += "<p class=\"note\">Means leave out frames that are equal to the reference.</p>\n";
    text += "<h2>Over time</h2>\n" + plots(measured, summary, tracks);
    if (!exhibits.empty()) text += "<h2>Frames</h2>\n";
    std::string order = "reference";
    for (const TestMeasures& test : measured.tests) order += ", " + test.name;
    for (const Exhibit& exhibit : exhibits) {
        text += fmt::format("<h3>Frame {}{}</h3>\n", exhibit.frame,
                            exhibit.chosen ? "" : " (among the worst)");
        text += picture(exhibit.face, order + "; below: five times the difference");
        text += picture(exhibit.mouth, "mouth, twice as large; below: five times the difference");
    }
    return text + "</body></html>\n";
}

}  // namespace newscaster::forensics
