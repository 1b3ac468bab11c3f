// newscaster render: audio file + avatar -> video file.
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "commands.h"
#include "data_paths.h"
#include "interrupt.h"
#include "newscaster/error.h"
#include "newscaster/render.h"
#include "progress.h"
#include "render_report.h"

namespace newscaster::cli {

namespace {

namespace fs = std::filesystem;

struct RenderOptions {
    std::string audio;
    std::string avatar = "anna";
    std::string pack = "studio";
    std::string output;
    std::string format;
    double crf = 18.0;
    std::string preset = "veryfast";
    std::string provider = "auto";
    std::string precision = "auto";
    int threads = 0;
    int batch_size = 0;
    bool no_cache = false;
    int64_t steps = 0;
    std::string seed;
    std::string emotion;
    std::string export_motion;
    std::string report;
    int stride = 1;
    bool kinematic_smoothing = false;
};

// fp16, fp32 and fp8 are the spelling of other tools.
std::string precision_name(const std::string& given) {
    if (given == "fp32") return "f32";
    if (given == "fp16") return "f16";
    return given;
}

void refuse_missing_features(const RenderOptions& options) {
    const auto refuse = [](const std::string& what) {
        throw Error(ErrorCode::bad_input,
                    what + " is not available in this version; see docs/roadmap.md");
    };
    if (options.stride != 1) refuse(fmt::format("--stride {}", options.stride));
    if (options.kinematic_smoothing) refuse("--kinematic_smoothing");
    if (options.precision == "fp8") refuse("--precision fp8");
}

std::string default_output(const RenderOptions& options) {
    if (options.format == "nv12" || options.format == "y4m" || options.format == "mkv") {
        return fs::path(options.audio).stem().string() + "." + options.format;
    }
    const std::string stem = options.audio == "-" ? "newscaster" : fs::path(options.audio).stem();
    return options.format == "png" ? stem + "_frames" : stem + ".mp4";
}

uint64_t parse_seed(const std::string& text) {
    size_t used = 0;
    uint64_t seed = 0;
    try {
        if (!text.empty() && text.front() != '-') seed = std::stoull(text, &used, 0);
    } catch (const std::exception&) {
        used = 0;
    }
    if (used == 0 || used != text.size()) {
        throw Error(ErrorCode::bad_input,
                    fmt::format("--seed: found \"{}\", wanted an integer from 0 to 2^64-1", text));
    }
    return seed;
}

RenderJob make_job(const RenderOptions& options, const GlobalOptions& global) {
    RenderJob job;
    job.audio = options.audio;
    job.output = options.output.empty() ? default_output(options) : options.output;
    job.format = options.format;
    job.crf = options.crf;
    job.preset = options.preset;
    job.export_motion = options.export_motion;
    if (options.steps != 0) job.session.steps = options.steps;
    if (!options.seed.empty()) job.session.seed = parse_seed(options.seed);
    job.session.emotion = options.emotion;
    job.log = global.log_sink();
    return job;
}

EngineOptions make_engine_options(const RenderOptions& options, const GlobalOptions& global) {
    EngineOptions engine;
    engine.pack = find_data("packs", options.pack);
    engine.provider = options.provider;
    engine.precision = precision_name(options.precision);
    engine.threads = options.threads;
    engine.frames_in_flight = options.batch_size;
    engine.use_cache = !options.no_cache;
    engine.log = global.log_sink();
    return engine;
}

void write_report(const std::string& file, const nlohmann::json& report) {
    std::ofstream stream(file, std::ios::trunc);
    stream << report.dump(2) << '\n';
    stream.close();
    if (!stream) throw Error(ErrorCode::io, file + ": the report cannot be written");
}

void print_summary(const GlobalOptions& global, const RenderJob& job, const RenderReport& report) {
    if (global.quiet) return;
    fmt::print(stderr, "{}: {} frames, {:.2f} s of audio in {:.2f} s ({:.1f} fps, RTF {:.2f})\n",
               job.output == "-" ? "standard output" : job.output, report.frames, report.audio_s,
               report.wall_s, report.fps, report.rtf);
}

int render(const RenderOptions& options, const GlobalOptions& global) {
    refuse_missing_features(options);
    const RenderJob job = make_job(options, global);
    if (job.output == "-" && global.json) {
        throw Error(ErrorCode::bad_input, "--json and -o - both want standard output");
    }
    const EngineOptions engine_options = make_engine_options(options, global);
    const fs::path avatar_folder = find_data("avatars", options.avatar);
    check_job(job);  // everything that can be wrong with the input, before the slow part

    const Engine engine(engine_options);
    const AvatarPtr avatar = engine.load_avatar(avatar_folder);
    Progress progress(global.progress, global.quiet);
    RenderReport report;
    try {
        report = render_file(engine, avatar, job, [&](const RenderProgress& state) {
            progress.update(state.frames, state.total_frames);
            return !interrupted();
        });
    } catch (...) {
        progress.finish();
        throw;
    }
    progress.finish();
    const nlohmann::json json = to_json(report, engine.info(), *avatar, job);
    if (!options.report.empty()) write_report(options.report, json);
    if (global.json) fmt::print("{}\n", json.dump(2));
    print_summary(global, job, report);
    return 0;
}

void add_output_options(CLI::App& verb, RenderOptions& options) {
    verb.add_option("-o,--output,--output_path", options.output,
                    "Video to write; - for standard output [<audio name>.mp4]")
        ->type_name("FILE");
    verb.add_option("--format", options.format,
                    "mp4, mkv, nv12, y4m or png (a folder of pictures) [by the file name]")
        ->type_name("NAME");
    verb.add_option("--crf", options.crf, "H.264 quality, 0 lossless .. 51 smallest")
        ->check(CLI::Range(0.0, 51.0))
        ->type_name("Q")
        ->capture_default_str();
    verb.add_option("--preset", options.preset, "libx264 speed preset, ultrafast .. veryslow")
        ->type_name("NAME")
        ->capture_default_str();
    verb.add_option("--export-motion", options.export_motion,
                    "Also write the motion curves: .csv (Live Link Face), .json or .npz")
        ->type_name("FILE");
    verb.add_option("--report", options.report, "Write timings and memory of the run as JSON")
        ->type_name("FILE");
}

void add_engine_options(CLI::App& verb, RenderOptions& options) {
    verb.add_option("--pack", options.pack, "Model pack: bundled name or folder")
        ->type_name("PACK")
        ->capture_default_str();
    verb.add_option("--provider", options.provider, "auto or cpu")
        ->type_name("NAME")
        ->capture_default_str();
    verb.add_option("--precision", options.precision,
                    "Of the renderer: auto (fastest native), f32, bf16, f16, int8")
        ->type_name("NAME")
        ->capture_default_str();
    verb.add_option("--threads", options.threads, "Compute threads, 0 = all cores")
        ->check(CLI::Range(0, 1024))
        ->type_name("N")
        ->capture_default_str();
    verb.add_option("--batch-size,--batch_size", options.batch_size,
                    "Frames rendered at the same time, 0 = one per thread")
        ->check(CLI::Range(0, 1024))
        ->type_name("N")
        ->capture_default_str();
    verb.add_flag("--no-cache", options.no_cache, "Do not keep compiled graphs");
}

void add_motion_options(CLI::App& verb, RenderOptions& options) {
    verb.add_option("--seed", options.seed,
                    "Head motion and blinks; same seed, same bytes [pack's]")
        ->type_name("N");
    verb.add_option("--steps", options.steps, "Diffusion steps, 0 = the pack's default")
        ->check(CLI::Range(0, 1000))
        ->type_name("N")
        ->capture_default_str();
    verb.add_option("--emotion", options.emotion, "neutral, happy, ... as the pack offers")
        ->type_name("NAME");
    verb.add_option("--stride", options.stride, "Draw every frame (1); other strides come later")
        ->type_name("N")
        ->capture_default_str();
    verb.add_flag("--kinematic_smoothing", options.kinematic_smoothing, "Comes later")->group("");
}

}  // namespace

void add_render_command(CLI::App& app, const GlobalOptions& global, Dispatch& dispatch) {
    auto options = std::make_shared<RenderOptions>();
    CLI::App* verb = app.add_subcommand("render", "Render speech audio as video of an avatar");
    verb->add_option("audio,--audio_path", options->audio,
                     "Audio or video file with speech; - for standard input")
        ->required()
        ->type_name("AUDIO");
    verb->add_option("-a,--avatar,--avatar_dir", options->avatar,
                     "Presenter: bundled name (anna, marcus, mei) or folder")
        ->type_name("AVATAR")
        ->capture_default_str();
    add_output_options(*verb, *options);
    add_motion_options(*verb, *options);
    add_engine_options(*verb, *options);
    verb->callback([options, &global, &dispatch] {
        dispatch.action = [options, &global] { return render(*options, global); };
    });
}

}  // namespace newscaster::cli
