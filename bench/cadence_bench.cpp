// What the strides cost and save: every stride in both modes against drawing every frame, for the
// bundled presenters; writes cadence.json and cadence.md.
//
//   newscaster_cadence_bench --output-dir docs/benchmarks
//   newscaster_cadence_bench --provider cuda --pack PACK --avatars FOLDER --output-dir FOLDER
//
// With a pack other than the bundled one there are no targets, and pictures drawn with seeded
// weights say nothing about quality: the speed-ups count.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "avatar/avatar.h"
#include "cadence_page.h"
#include "cadence_run.h"
#include "core/file.h"
#include "machine.h"
#include "media/audio_source.h"
#include "pack/pack.h"

namespace newscaster::bench {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

struct Options {
    std::vector<std::string> avatars{"anna", "marcus", "mei"};
    std::string speech = NEWSCASTER_SOURCE_DIR "/examples/speech.wav";
    std::string pack;  // empty: the bundled one
    std::string provider = "cpu";
    std::string precision = "auto";
    int frames_in_flight = 0;
    double seconds = 0.0;  // 0: all
    std::vector<int> strides{2, 3, 0};
    std::string output_dir;
    CadenceOptions cadence;
};

std::vector<float> read_speech(const Options& options, int64_t rate_hz) {
    auto samples = media::read_mono(options.speech, rate_hz);
    const auto wanted = static_cast<size_t>(options.seconds * static_cast<double>(rate_hz));
    if (wanted > 0 && wanted < samples.size()) samples.resize(wanted);
    return samples;
}

void print_row(const std::string& avatar, const json& row) {
    const auto pair = [&](const char* name) {
        const json& value = row.at(name);
        if (!value.contains("mean")) return std::string("equal");
        return fmt::format("{:.1f}/{:.1f}@{}", value.at("mean").get<double>(),
                           value.at("worst").get<double>(), value.at("worst_frame").get<int64_t>());
    };
    fmt::print(stderr,
               "{} stride {} {}: {:.1f} % neural, {:.1f} fps, {:.1f} core-ms, canvas {}, mouth {}, "
               "eyes {}\n",
               avatar, row.at("stride").get<int>(), row.at("mode").get<std::string>(),
               100.0 * row.at("neural_share").get<double>(), row.at("fps").get<double>(),
               row.at("core_ms_per_frame").get<double>(), pair("canvas_psnr"), pair("mouth_psnr"),
               pair("eyes_psnr"));
}

json measure_avatar(const Options& options, const Engine& engine, const pack::Manifest& manifest,
                    const std::string& name) {
    const fs::path bundled = fs::path(NEWSCASTER_SOURCE_DIR) / "avatars" / name;
    const fs::path folder = fs::exists(name) ? fs::path(name) : bundled;
    const auto avatar = engine.load_avatar(folder);
    const auto disk = avatar::load_avatar(folder, manifest, pack::avatar_key(manifest));
    const auto samples = read_speech(options, engine.info().sample_rate_hz);
    const double area = static_cast<double>(avatar->width()) * avatar->height();
    json rows = json::array();
    CadenceOptions cadence = options.cadence;
    cadence.stride = 1;
    // The first session of an engine touches memory and code for the first time.
    const std::vector<float> second(
        samples.begin(),
        samples.begin() + std::min<int64_t>(std::ssize(samples), engine.info().sample_rate_hz));
    run_cadence(engine, avatar, second, cadence);
    const CadenceRun dense = run_cadence(engine, avatar, samples, cadence);
    const auto add = [&](const CadenceRun& run, const char* mode) {
        json row = compare_cadence(dense, run, manifest, disk.crop_to_canvas.front(), area);
        row["stride"] = cadence.stride;
        row["mode"] = mode;
        print_row(name, row);
        rows.push_back(std::move(row));
    };
    add(dense, "dense");
    for (const auto mode : {StrideMode::warp, StrideMode::frame}) {
        for (const int stride : options.strides) {
            cadence.stride = stride;
            cadence.mode = mode;
            add(run_cadence(engine, avatar, samples, cadence),
                mode == StrideMode::warp ? "warp" : "frame");
        }
    }
    return rows;
}

void run(const Options& options) {
    EngineOptions engine_options;
    engine_options.pack = options.pack.empty() ? fs::path(NEWSCASTER_SOURCE_DIR) / "packs/studio"
                                               : fs::path(options.pack);
    engine_options.provider = options.provider;
    engine_options.precision = options.precision;
    engine_options.frames_in_flight = options.frames_in_flight;
    const Engine engine(engine_options);
    const auto pack = pack::Pack::open(engine_options.pack);
    json results{{"machine", describe_machine()},
                 {"engine",
                  {{"pack", engine.info().pack_name},
                   {"device", engine.info().device_name},
                   {"runtime", engine.info().runtime},
                   {"precision", engine.info().precision},
                   {"threads", engine.info().threads},
                   {"frames_in_flight", engine.info().frames_in_flight}}},
                 {"avatars", json::object()}};
    for (const auto& name : options.avatars) {
        results["avatars"][fs::path(name).filename()] =
            measure_avatar(options, engine, pack.manifest(), name);
    }
    if (options.pack.empty()) results["targets"] = judge_cadence(results["avatars"]);
    if (options.output_dir.empty()) {
        fmt::print("{}\n", results.dump(2));
        return;
    }
    const fs::path folder = options.output_dir;
    write_text_atomic(folder / "cadence.json", results.dump(2) + "\n");
    write_text_atomic(folder / "cadence.md", cadence_page(results));
}

}  // namespace

}  // namespace newscaster::bench

int main(int argc, char** argv) try {
    newscaster::bench::Options options;
    CLI::App app("Measures the strides against drawing every frame");
    app.add_option("--avatars", options.avatars, "Bundled presenters, or folders")->delimiter(',');
    app.add_option("--pack", options.pack, "Model pack [the bundled one]");
    app.add_option("--provider", options.provider, "cpu or cuda");
    app.add_option("--frames-in-flight", options.frames_in_flight, "Batch size on a GPU");
    app.add_option("--speech", options.speech, "Recording");
    app.add_option("--precision", options.precision, "Of the renderer");
    app.add_option("--seconds", options.seconds, "Only the start of the recording");
    app.add_option("--strides", options.strides, "2, 3, 0")->delimiter(',');
    app.add_option("--lips-residual", options.cadence.lips_residual, "Adaptive tolerance");
    app.add_option("--lips-spread", options.cadence.lips_spread, "Adaptive tolerance");
    app.add_option("--eyes-residual", options.cadence.eyes_residual, "Adaptive tolerance");
    app.add_option("--eyes-spread", options.cadence.eyes_spread, "Adaptive tolerance");
    app.add_option("--max-neural-share", options.cadence.max_neural_share, "Adaptive budget");
    app.add_option("--output-dir", options.output_dir, "For cadence.json and cadence.md [stdout]");
    CLI11_PARSE(app, argc, argv);
    newscaster::bench::run(options);
    return 0;
} catch (const std::exception& exception) {
    std::fprintf(stderr, "newscaster_cadence_bench: %s\n", exception.what());
    return 1;
}
