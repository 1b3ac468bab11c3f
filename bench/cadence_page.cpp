#include "cadence_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace newscaster::bench {

namespace {

using nlohmann::json;

constexpr std::string_view kIntro =
    "# Benchmarks of the strides\n\n"
    "Written by `newscaster_cadence_bench --output-dir docs/benchmarks`; as measured:\n"
    "[cadence.json](cadence.json). What the strides are: [docs/cadence.md](../cadence.md).\n\n"
    "Every stride draws `examples/speech.wav` and is compared with drawing every frame (stride 1)\n"
    "in the same process, without encoding. Keyframes are checked to be byte for byte those of\n"
    "stride 1. The figures are over the **frames in between alone**: counting the identical\n"
    "keyframes would only flatter them.\n\n"
    "- **neural**: share of frames drawn by warp and decoder.\n"
    "- **core-ms**: time of all threads per frame, the figure to trust when others use the "
    "machine.\n"
    "- **renderer**: time in warp, decoder and blending per frame, all workers together; on a GPU\n"
    "  device time.\n"
    "- **others**: cores that other processes used meanwhile; anything above 0.1 spoils **fps**.\n"
    "- **canvas**, **mouth**, **eyes**: PSNR of luma in dB, mean / worst frame (its index). Mouth\n"
    "  and eyes are the boxes of the keypoint groups with 5 % of the crop around them.\n"
    "- **SSIM**: of the canvas and of the mouth, mean.\n"
    "- **closures**, **blinks**: turns of lips and lids, found without the planner, that are not\n"
    "  keyframes / all.\n\n";

json target(std::string_view name, const std::string& wanted, double found, int digits, bool met) {
    return {{"name", name},
            {"wanted", wanted},
            {"found", fmt::format("{:.{}f}", found, digits)},
            {"met", met}};
}

// The value that is furthest from the target over the avatars, warp mode.
double extreme(const json& avatars, int stride, const std::string& metric, const char* what,
               bool highest) {
    double result = highest ? -1e9 : 1e9;
    for (const auto& [name, rows] : avatars.items()) {
        for (const auto& row : rows) {
            if (row.at("stride") != stride || row.at("mode") != "warp") continue;
            const json& value = row.at(metric);
            if (value.is_object() && !value.contains(what)) continue;
            const double number = (value.is_object() ? value.at(what) : value).get<double>();
            result = highest ? std::max(result, number) : std::min(result, number);
        }
    }
    return result;
}

std::string table_cell(const json& value) {
    if (!value.contains("mean")) return "equal";
    return fmt::format("{:.1f} / {:.1f} ({})", value.at("mean").get<double>(),
                       value.at("worst").get<double>(), value.at("worst_frame").get<int64_t>());
}

double renderer_ms(const json& row) {
    double sum = 0.0;
    for (const auto* stage : {"warp", "decode", "blend"}) {
        sum += row.at("stage_ms_per_frame").value(stage, 0.0);
    }
    return sum;
}

std::string table_row(const json& row, double dense_core_ms) {
    const double core_ms = row.at("core_ms_per_frame").get<double>();
    const auto mean = [&](const char* metric) {
        const json& value = row.at(metric);
        return value.contains("mean") ? fmt::format("{:.4f}", value.at("mean").get<double>())
                                      : std::string("1");
    };
    return fmt::format(
        "| {} | {} | {:.1f} % | {:.1f} | {:.1f} | {:.2f} | {:.2f}x | {:.1f} | {} | {} | {} | {} / "
        "{} | "
        "{} / {} | {} / {} |\n",
        row.at("stride").get<int>(), row.at("mode").get<std::string>(),
        100.0 * row.at("neural_share").get<double>(), row.at("fps").get<double>(), core_ms,
        renderer_ms(row), dense_core_ms / core_ms, row.at("foreign_cores").get<double>(),
        table_cell(row.at("canvas_psnr")), table_cell(row.at("mouth_psnr")),
        table_cell(row.at("eyes_psnr")), mean("canvas_ssim"), mean("mouth_ssim"),
        row.at("closures_lost").get<int>(), row.at("closures").get<int>(),
        row.at("blinks_lost").get<int>(), row.at("blinks").get<int>());
}

}  // namespace

json judge_cadence(const json& avatars) {
    json targets = json::array();
    const auto at_least = [&](std::string_view name, int stride, const char* metric,
                              const char* what, double wanted, int digits) {
        const double found = extreme(avatars, stride, metric, what, false);
        targets.push_back(
            target(name, fmt::format(">= {:g}", wanted), found, digits, found >= wanted));
    };
    const auto at_most = [&](std::string_view name, int stride, const char* metric, double wanted,
                             int digits) {
        const double found = extreme(avatars, stride, metric, "", true);
        targets.push_back(
            target(name, fmt::format("<= {:g}", wanted), found, digits, found <= wanted));
    };
    at_least("stride 2, canvas PSNR, mean (dB)", 2, "canvas_psnr", "mean", 52.0, 1);
    at_least("stride 2, canvas SSIM, mean", 2, "canvas_ssim", "mean", 0.997, 4);
    at_least("stride 2, mouth PSNR, mean (dB)", 2, "mouth_psnr", "mean", 43.0, 1);
    at_least("stride 3, canvas PSNR, mean (dB)", 3, "canvas_psnr", "mean", 50.0, 1);
    at_most("stride 0, share of neural frames", 0, "neural_share", 0.5, 3);
    at_least("stride 0, mouth PSNR, worst (dB)", 0, "mouth_psnr", "worst", 36.0, 1);
    at_least("stride 0, eyes PSNR, worst (dB)", 0, "eyes_psnr", "worst", 36.0, 1);
    at_most("stride 0, closures lost", 0, "closures_lost", 0.0, 0);
    at_most("stride 0, blinks lost", 0, "blinks_lost", 0.0, 0);
    return targets;
}

std::string cadence_page(const json& results) {
    const json& machine = results.at("machine");
    const json& engine = results.at("engine");
    std::string page(kIntro);
    page += fmt::format(
        "## Machine\n\n{}, {} cores, {}; {}, {}; {} pack in {}, {} threads, {} frames in flight; "
        "{}\n\n",
        machine.at("cpu").get<std::string>(), machine.at("cores").get<int>(),
        machine.at("vector_extensions").get<std::string>(), engine.at("device").get<std::string>(),
        engine.at("runtime").get<std::string>(), engine.at("pack").get<std::string>(),
        engine.at("precision").get<std::string>(), engine.at("threads").get<int>(),
        engine.at("frames_in_flight").get<int>(), machine.at("date").get<std::string>());
    const json targets = results.value("targets", json::array());
    if (!targets.empty()) {
        page +=
            "## Targets\n\nOf the default mode, `warp`; the worst of the presenters.\n\n"
            "| target | wanted | found | |\n|---|---|---|---|\n";
    }
    for (const auto& row : targets) {
        page += fmt::format("| {} | {} | {} | {} |\n", row.at("name").get<std::string>(),
                            row.at("wanted").get<std::string>(), row.at("found").get<std::string>(),
                            row.at("met").get<bool>() ? "pass" : "**missed**");
    }
    for (const auto& [name, rows] : results.at("avatars").items()) {
        page += fmt::format(
            "\n## {}\n\n| stride | mode | neural | fps | core-ms | renderer ms | gain | others | "
            "canvas | mouth "
            "| "
            "eyes | SSIM canvas / mouth | closures lost | blinks lost "
            "|\n|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
            name);
        const double dense = rows.front().at("core_ms_per_frame").get<double>();
        for (const auto& row : rows) page += table_row(row, dense);
    }
    return page;
}

}  // namespace newscaster::bench
