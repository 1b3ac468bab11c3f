// Whole renders by the newscaster program; writes cpu.json, cpu-stages.json and cpu.md.
//
//   newscaster_render_bench --seconds 10,60,600 --program build/bench/newscaster
//       --composite composite.json --stages stages.json --output-dir docs/benchmarks
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "core/file.h"
#include "machine.h"
#include "newscaster/error.h"
#include "program_run.h"
#include "results_page.h"

namespace newscaster::bench {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr double kLongSeconds = 300.0;  // from here on one run is enough

struct Options {
    std::vector<double> seconds{10.0, 60.0, 600.0};
    int repeats = 3;
    std::string program = "build/bench/newscaster";
    std::string speech = NEWSCASTER_SOURCE_DIR "/examples/speech.wav";
    std::string composite;
    std::string stages;
    std::string output_dir = "docs/benchmarks";
};

// A fresh folder that disappears with the object.
class ScratchFolder {
  public:
    ScratchFolder() {
        std::string name = (fs::temp_directory_path() / "newscaster-bench-XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr) {
            throw Error(ErrorCode::io, name + ": the folder cannot be made");
        }
        path_ = name;
    }
    ScratchFolder(const ScratchFolder&) = delete;
    ScratchFolder& operator=(const ScratchFolder&) = delete;
    ~ScratchFolder() {
        std::error_code ignored;
        fs::remove_all(path_, ignored);
    }
    [[nodiscard]] const fs::path& path() const { return path_; }

  private:
    fs::path path_;
};

json measure(const Options& options, double seconds, const fs::path& folder) {
    const auto wav = folder / "speech.wav";
    write_looped_speech(options.speech, seconds, wav);
    json runs = json::array();
    const int repeats = seconds >= kLongSeconds ? 1 : options.repeats;
    for (int i = 0; i < repeats; ++i) {
        runs.push_back(run_render(options.program, wav, folder));
        const auto& run = runs.back();
        fmt::print(
            stderr, "{:g} s, run {}/{}: RTF {:.2f}, TTFF {:.2f} s, {:.0f} MiB, others {:.2f}\n",
            seconds, i + 1, repeats, run.at("rtf").get<double>(), run.at("ttff_s").get<double>(),
            run.at("peak_rss_bytes").get<double>() / (1U << 20U),
            run.at("foreign_load_cores").get<double>());
    }
    std::vector<json> ordered(runs.begin(), runs.end());
    std::ranges::sort(ordered, {}, [](const json& run) { return run.at("rtf").get<double>(); });
    return {{"seconds", seconds}, {"runs", runs}, {"median", ordered[ordered.size() / 2]}};
}

// The benchmarks of a --benchmark_out file; empty without a file.
json read_benchmarks(const std::string& file) {
    if (file.empty()) return json::array();
    return json::parse(read_text(file)).at("benchmarks");
}

double median_ms(const json& benchmarks, const std::string& name) {
    for (const auto& entry : benchmarks) {
        if (entry.at("run_name") != name || entry.value("aggregate_name", "") != "median") continue;
        if (entry.at("time_unit") != "ms") break;
        return entry.at("cpu_time").get<double>();
    }
    throw Error(ErrorCode::bad_input,
                fmt::format("{}: found no median in ms, wanted a run with repetitions", name));
}

// Ours with the best kernel, which is measured first, against both OpenCV versions.
json summarize_compositor(const json& benchmarks) {
    json rows = json::array();
    for (const std::string crop : {"straight", "rotated"}) {
        const std::string prefix = "paste/" + crop + "/";
        for (const auto& entry : benchmarks) {
            const auto name = entry.at("run_name").get<std::string>();
            if (!name.starts_with(prefix)) continue;
            rows.push_back({{"crop", crop},
                            {"kernel", name.substr(prefix.size())},
                            {"ours_ms", median_ms(benchmarks, name)},
                            {"opencv_u8_ms", median_ms(benchmarks, prefix + "opencv_u8")},
                            {"opencv_f32_ms", median_ms(benchmarks, prefix + "opencv_f32")}});
            break;
        }
    }
    return rows;
}

void run(const Options& options) {
    const json stages = read_benchmarks(options.stages);
    const json composite = read_benchmarks(options.composite);
    const ScratchFolder scratch;
    json results{{"machine", describe_machine()},
                 {"compositor", summarize_compositor(composite)},
                 {"renders", json::array()}};
    // Once unmeasured, so that the compiled graphs are in the cache and the files in memory.
    write_looped_speech(options.speech, 1.0, scratch.path() / "warm.wav");
    (void)run_render(options.program, scratch.path() / "warm.wav", scratch.path());
    for (const double seconds : options.seconds) {
        results["renders"].push_back(measure(options, seconds, scratch.path()));
    }
    results["targets"] = judge_targets(results);

    const fs::path folder = options.output_dir;
    json all = composite;
    all.insert(all.end(), stages.begin(), stages.end());
    write_text_atomic(folder / "cpu.json", results.dump(2) + "\n");
    write_text_atomic(folder / "cpu-stages.json",
                      json{{"machine", results["machine"]}, {"benchmarks", all}}.dump(2) + "\n");
    write_text_atomic(folder / "cpu.md", results_page(results, stages));
    fmt::print("{}\n", (folder / "cpu.md").string());
}

}  // namespace
}  // namespace newscaster::bench

int main(int argc, char** argv) try {
    newscaster::bench::Options options;
    CLI::App app{"Measures whole renders and writes the results page"};
    app.add_option("--seconds", options.seconds, "Lengths of the audio")
        ->delimiter(',')
        ->check(CLI::Range(0.1, 36000.0));
    app.add_option("--repeats", options.repeats, "Runs of lengths below 300 s; the median counts")
        ->check(CLI::Range(1, 100));
    app.add_option("--program", options.program, "newscaster program")->check(CLI::ExistingFile);
    app.add_option("--speech", options.speech, "Recording to repeat")->check(CLI::ExistingFile);
    app.add_option("--composite", options.composite, "Results of newscaster_composite_bench")
        ->check(CLI::ExistingFile);
    app.add_option("--stages", options.stages, "Results of newscaster_stages_bench")
        ->check(CLI::ExistingFile);
    app.add_option("--output-dir", options.output_dir, "Folder of the three result files");
    CLI11_PARSE(app, argc, argv);
    newscaster::bench::run(options);
    return 0;
} catch (const std::exception& exception) {
    std::fprintf(stderr, "newscaster_render_bench: %s\n", exception.what());
    return 1;
}
