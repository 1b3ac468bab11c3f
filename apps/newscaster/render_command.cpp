// newscaster render: audio file + avatar -> video file.
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "commands.h"
#include "data_paths.h"
#include "engine_options.h"
#include "interrupt.h"
#include "newscaster/error.h"
#include "newscaster/render.h"
#include "progress.h"
#include "render_options.h"
#include "render_report.h"

namespace newscaster::cli {

namespace {

namespace fs = std::filesystem;

// fp16, fp32 and fp8 are the spelling of other tools.
std::string precision_name(const std::string& given) {
    if (given == "fp32") return "f32";
    if (given == "fp16") return "f16";
    return given;
}

EngineOptions make_engine_options(const RenderRequest& request, const GlobalOptions& global) {
    EngineOptions engine = base_engine_options(request, global);
    if (request.vram_mode == "resident") engine.vram_mode = VramMode::resident;
    if (request.vram_mode == "streamed") engine.vram_mode = VramMode::streamed;
    engine.precision = precision_name(request.precision);
    engine.frames_in_flight = request.batch_size;
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

}  // namespace

int run(const RenderRequest& request, const GlobalOptions& global) {
    RenderJob job = make_job(request);
    job.log = global.log_sink();
    if (job.output == "-" && global.json) {
        throw Error(ErrorCode::bad_input, "--json and -o - both want standard output");
    }
    const EngineOptions engine_options = make_engine_options(request, global);
    const fs::path avatar_folder = find_data("avatars", request.avatar);
    check_job(
        job,
        engine_options.pack);  // everything that can be wrong with the input, before the slow part

    const Engine engine(engine_options);
    const AvatarPtr avatar = engine.load_avatar(avatar_folder);
    if (!request.character.empty()) {
        job.session.character = engine.load_avatar(find_data("avatars", request.character));
    }
    Progress progress(global.progress, global.quiet);
    const RenderReport report = render_file(engine, avatar, job, [&](const RenderProgress& state) {
        progress.update(state.frames, state.total_frames);
        return !interrupted();
    });
    progress.finish();
    const nlohmann::json json = to_json(report, engine.info(), *avatar, job);
    if (!request.report.empty()) write_report(request.report, json);
    if (global.json) fmt::print("{}\n", json.dump(2));
    print_summary(global, job, report);
    return 0;
}

}  // namespace newscaster::cli
