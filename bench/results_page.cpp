#include "results_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>

namespace newscaster::bench {

namespace {

using nlohmann::json;

constexpr double kMaxRtf = 0.9;
constexpr double kMaxTtffS = 1.0;
constexpr double kMaxRssGrowth = 0.05;
constexpr double kMaxRssGib = 1.0;
constexpr double kMinCompositorGain = 5.0;
constexpr double kForeignLoadCores = 0.1;

constexpr std::string_view kIntro =
    "# Benchmarks on the CPU\n\n"
    "Written by `make bench`; all figures are from one run on the machine below. As measured:\n"
    "[cpu.json](cpu.json) (whole renders, compositor) and [cpu-stages.json](cpu-stages.json)\n"
    "(Google Benchmark, every stage alone).\n\n";

constexpr std::string_view kRenderNotes =
    "The program `newscaster render` on `examples/speech.wav`, repeated to the given length, with\n"
    "default options and a warm cache of compiled graphs; the median run by RTF of those made.\n\n"
    "- **RTF**: wall time of the render / length of the audio; below 1 is faster than real time.\n"
    "- **TTFF**: from the render call, with the engine loaded, to the first finished frame.\n"
    "- **engine load**: opening the device and the compiled graphs, once per process.\n"
    "- **from start**: from the start of the process to the first finished frame, engine and "
    "avatar\n"
    "  loading included.\n"
    "- **peak RSS**: the most memory the process ever held.\n"
    "- **core-s/s**: core-seconds of all threads, engine loading included, per second of audio.\n"
    "- **others**: cores that other processes used meanwhile; anything above 0.1 spoils timings.\n"
    "\n";

double gib(const json& bytes) {
    return bytes.get<double>() / (1U << 30U);
}

const json* render_of(const json& results, double audio_s) {
    for (const auto& render : results.at("renders")) {
        if (render.at("seconds").get<double>() == audio_s) return &render.at("median");
    }
    return nullptr;
}

json target(std::string_view name, const std::string& wanted, const std::string& found, bool met) {
    return {{"name", name}, {"wanted", wanted}, {"found", found}, {"met", met}};
}

void judge_renders(const json& results, json& targets) {
    double rtf = 0.0;
    double ttff_s = 0.0;
    for (const auto& render : results.at("renders")) {
        rtf = std::max(rtf, render.at("median").at("rtf").get<double>());
        ttff_s = std::max(ttff_s, render.at("median").at("ttff_s").get<double>());
    }
    targets.push_back(target("RTF, every length", fmt::format("<= {:.1f}", kMaxRtf),
                             fmt::format("{:.2f}", rtf), rtf <= kMaxRtf));
    targets.push_back(target("TTFF after warm start", fmt::format("<= {:.1f} s", kMaxTtffS),
                             fmt::format("{:.2f} s", ttff_s), ttff_s <= kMaxTtffS));
    const json* minute = render_of(results, 60.0);
    const json* ten_minutes = render_of(results, 600.0);
    if (minute == nullptr || ten_minutes == nullptr) return;
    const double long_gib = gib(ten_minutes->at("peak_rss_bytes"));
    const double growth = long_gib / gib(minute->at("peak_rss_bytes")) - 1.0;
    targets.push_back(target("peak RSS, 600 s against 60 s",
                             fmt::format("<= +{:.0f} %", 100.0 * kMaxRssGrowth),
                             fmt::format("{:+.1f} %", 100.0 * growth), growth <= kMaxRssGrowth));
    targets.push_back(target("peak RSS, 600 s", fmt::format("< {:.0f} GiB", kMaxRssGib),
                             fmt::format("{:.2f} GiB", long_gib), long_gib < kMaxRssGib));
}

void write_machine(std::string& page, const json& results) {
    const auto& machine = results.at("machine");
    page += "## Machine\n\n| | |\n|---|---|\n";
    auto out = std::back_inserter(page);
    fmt::format_to(out, "| CPU | {}, family {}, model {} |\n", machine.at("cpu").get<std::string>(),
                   machine.at("cpu_family").get<std::string>(),
                   machine.at("cpu_model").get<std::string>());
    fmt::format_to(out, "| vector extensions | {} |\n",
                   machine.at("vector_extensions").get<std::string>());
    fmt::format_to(out, "| cores the system shows | {} |\n", machine.at("cores").get<int>());
    fmt::format_to(out, "| memory | {:.1f} GiB |\n", machine.at("memory_gib").get<double>());
    for (const char* key : {"kernel", "compiler", "date"}) {
        fmt::format_to(out, "| {} | {} |\n", key, machine.at(key).get<std::string>());
    }
    if (results.at("renders").empty()) return;
    const auto& run = results.at("renders").front().at("median");
    const auto& engine = run.at("engine");
    fmt::format_to(out, "| newscaster | {} |\n| runtime | {} |\n",
                   run.at("newscaster").get<std::string>(),
                   engine.at("runtime").get<std::string>());
    fmt::format_to(out, "| pack, precision | {} {}, {} |\n", engine.at("pack").get<std::string>(),
                   engine.at("pack_version").get<std::string>(),
                   engine.at("precision").get<std::string>());
    fmt::format_to(out, "| threads, frames in flight | {}, {} |\n", engine.at("threads").get<int>(),
                   engine.at("frames_in_flight").get<int>());
    fmt::format_to(out, "| picture | {}x{}, avatar {} |\n", run.at("width").get<int>(),
                   run.at("height").get<int>(), run.at("avatar").get<std::string>());
}

void write_targets(std::string& page, const json& targets) {
    page += "\n## Targets\n\n| target | wanted | found | |\n|---|---|---|---|\n";
    for (const auto& entry : targets) {
        fmt::format_to(std::back_inserter(page), "| {} | {} | {} | {} |\n",
                       entry.at("name").get<std::string>(), entry.at("wanted").get<std::string>(),
                       entry.at("found").get<std::string>(),
                       entry.at("met").get<bool>() ? "pass" : "**miss**");
    }
}

void write_renders(std::string& page, const json& renders) {
    page += "\n## Whole renders\n\n";
    page += kRenderNotes;
    page +=
        "| audio | runs | RTF | frames/s | TTFF | engine load | from start | peak RSS | core-s/s | "
        "others |\n"
        "|---|---|---|---|---|---|---|---|---|---|\n";
    bool disturbed = false;
    for (const auto& render : renders) {
        const auto& run = render.at("median");
        const double foreign = run.at("foreign_load_cores").get<double>();
        disturbed = disturbed || foreign > kForeignLoadCores;
        fmt::format_to(std::back_inserter(page),
                       "| {:g} s | {} | {:.2f} | {:.1f} | {:.2f} s | {:.2f} s | {:.2f} s | {:.0f} "
                       "MiB | {:.2f} | "
                       "{:.2f} |\n",
                       render.at("seconds").get<double>(), render.at("runs").size(),
                       run.at("rtf").get<double>(), run.at("fps").get<double>(),
                       run.at("ttff_s").get<double>(), run.at("engine").at("load_s").get<double>(),
                       run.at("start_to_frame_s").get<double>(),
                       1024.0 * gib(run.at("peak_rss_bytes")),
                       run.at("cpu_s").get<double>() / run.at("audio_s").get<double>(), foreign);
    }
    if (disturbed) {
        page += "\n**The machine was busy with other work: these timings are not valid.**\n";
    }
}

void write_waterfall(std::string& page, const json& render) {
    const auto& run = render.at("median");
    fmt::format_to(std::back_inserter(page),
                   "\n### Waterfall of the {:g} s render\n\n"
                   "Time inside each stage. Stages overlap and warp, decode and composite run in "
                   "one thread per\nframe in flight, so the sum is more than the wall time, {:.1f} "
                   "s. Encoding hands frames to threads of\nthe codec; what they do appears only "
                   "in the core-seconds, {:.1f} s.\n\n"
                   "| stage | calls | busy | mean | p95 | max | first start | last end |\n"
                   "|---|---|---|---|---|---|---|---|\n",
                   render.at("seconds").get<double>(), run.at("wall_s").get<double>(),
                   run.at("cpu_s").get<double>());
    for (const auto& stage : run.at("stages")) {
        const auto value = [&](const char* key) { return stage.at(key).get<double>(); };
        fmt::format_to(std::back_inserter(page),
                       "| {} | {} | {:.2f} s | {:.2f} ms | {:.1f} ms | {:.1f} ms | {:.2f} s | "
                       "{:.2f} s |\n",
                       stage.at("name").get<std::string>(), stage.at("calls").get<int64_t>(),
                       value("busy_s"), value("mean_ms"), value("p95_ms"), value("max_ms"),
                       value("first_start_s"), value("last_end_s"));
    }
}

void write_compositor(std::string& page, const json& compositor) {
    page +=
        "\n## Compositor\n\n"
        "A 512 px crop pasted into a 1920x1080 canvas, one thread, core time per frame (median). "
        "OpenCV does\nwhat face-swap tools do: warpAffine, alpha blend and colour conversion of "
        "the "
        "whole canvas (`f32`), or\nthe same with 8-bit pictures (`u8`, coarser); mask and "
        "background are prepared for free. The gain that\ncounts is the one over the faster of "
        "the two.\n\n"
        "| crop | ours | OpenCV u8 | OpenCV f32 | gain over u8 | gain over f32 |\n"
        "|---|---|---|---|---|---|\n";
    for (const auto& row : compositor) {
        const auto value = [&](const char* key) { return row.at(key).get<double>(); };
        fmt::format_to(std::back_inserter(page),
                       "| {} | {:.2f} ms ({}) | {:.2f} ms | {:.2f} ms | {:.1f}x | {:.1f}x |\n",
                       row.at("crop").get<std::string>(), value("ours_ms"),
                       row.at("kernel").get<std::string>(), value("opencv_u8_ms"),
                       value("opencv_f32_ms"), value("opencv_u8_ms") / value("ours_ms"),
                       value("opencv_f32_ms") / value("ours_ms"));
    }
}

void write_stages(std::string& page, const json& stages) {
    page +=
        "\n## Stages alone\n\n"
        "One stage at a time, median of the repetitions. `core` is the time of all threads "
        "together: "
        "what the\nstage costs when the cores are shared. `xN` draws N frames at the same time, "
        "`wall` is then the time\nbetween two finished frames.\n\n"
        "| stage | item | wall | core |\n|---|---|---|---|\n";
    for (const auto& entry : stages) {
        if (entry.value("aggregate_name", "") != "median") continue;
        auto name = entry.at("run_name").get<std::string>();
        name = name.substr(0, name.rfind("/real_time"));
        fmt::format_to(std::back_inserter(page), "| {} | {} | {:.4g} ms | {:.4g} ms |\n", name,
                       entry.value("label", "frame"),
                       1e3 / entry.at("items_per_second").get<double>(),
                       entry.at("core_ms").get<double>());
    }
}

}  // namespace

json judge_targets(const json& results) {
    json targets = json::array();
    if (!results.at("renders").empty()) judge_renders(results, targets);
    std::optional<double> gain;
    for (const auto& row : results.at("compositor")) {
        const double opencv_ms =
            std::min(row.at("opencv_u8_ms").get<double>(), row.at("opencv_f32_ms").get<double>());
        const double row_gain = opencv_ms / row.at("ours_ms").get<double>();
        gain = std::min(gain.value_or(row_gain), row_gain);
    }
    if (gain) {
        targets.push_back(target("compositor against OpenCV, slowest case",
                                 fmt::format(">= {:.0f}x", kMinCompositorGain),
                                 fmt::format("{:.1f}x", *gain), *gain >= kMinCompositorGain));
    }
    return targets;
}

std::string results_page(const json& results, const json& stages) {
    std::string page(kIntro);
    write_machine(page, results);
    write_targets(page, results.at("targets"));
    if (!results.at("renders").empty()) {
        write_renders(page, results.at("renders"));
        const auto& renders = results.at("renders");
        write_waterfall(page, renders.at(std::min<size_t>(1, renders.size() - 1)));
    }
    if (!results.at("compositor").empty()) write_compositor(page, results.at("compositor"));
    if (!stages.empty()) write_stages(page, stages);
    return page;
}

}  // namespace newscaster::bench
