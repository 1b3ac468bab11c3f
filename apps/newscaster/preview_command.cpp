// newscaster avatar preview: a picture of what is redrawn, and three seconds of speech.
#include "newscaster/preview.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "commands.h"
#include "data_paths.h"
#include "engine_options.h"
#include "interrupt.h"
#include "newscaster/error.h"
#include "newscaster/render.h"
#include "progress.h"

namespace newscaster::cli {

namespace {

namespace fs = std::filesystem;

constexpr double kSpokenS = 3.0;

// The folder's name, whatever way it was spelled.
std::string prefix_of(const AvatarPreviewRequest& request, const fs::path& avatar) {
    std::error_code ignored;
    const bool in_folder =
        request.output.ends_with('/') || fs::is_directory(request.output, ignored);
    if (!request.output.empty() && !in_folder) return request.output;
    const fs::path full = fs::weakly_canonical(avatar, ignored);
    const std::string name = fmt::format("{}-preview", full.filename().string());
    return in_folder ? (fs::path(request.output) / name).string() : name;
}

// Named ones have to be there; without the bundled ones there are no landmarks.
fs::path detectors_of(const AvatarPreviewRequest& request) {
    if (!request.detectors.empty()) return request.detectors;
    try {
        return find_detectors();
    } catch (const Error& error) {
        if (error.code() != ErrorCode::bad_pack) throw;
        return {};
    }
}

RenderReport render_sample(const RenderJob& job, const EngineOptions& options,
                           const fs::path& avatar, const GlobalOptions& global) {
    const Engine engine(options);
    Progress progress(global.progress, global.quiet);
    return render_file(engine, engine.load_avatar(avatar), job, [&](const RenderProgress& state) {
        progress.update(state.frames, state.total_frames);
        return !interrupted();
    });
}

}  // namespace

int run(const AvatarPreviewRequest& request, const GlobalOptions& global) {
    const fs::path avatar = find_data("avatars", request.avatar);
    const EngineOptions options = base_engine_options(request, global);
    const std::string prefix = prefix_of(request, avatar);
    RenderJob job;
    job.audio = request.audio.empty() ? find_speech().string() : request.audio;
    job.output = prefix + ".mp4";
    job.max_audio_s = kSpokenS;
    job.log = global.log_sink();
    check_job(job, options.pack);

    const std::string picture = prefix + ".png";
    const bool landmarks = draw_preview({.pack = options.pack,
                                         .avatar = avatar,
                                         .detectors = detectors_of(request),
                                         .output = picture});
    const RenderReport report = render_sample(job, options, avatar, global);
    if (global.json) {
        const nlohmann::json json{{"picture", picture},
                                  {"landmarks", landmarks},
                                  {"video", job.output},
                                  {"frames", report.frames}};
        fmt::print("{}\n", json.dump(2));
    } else if (!global.quiet) {
        fmt::print("{}: the part that is redrawn, with {}\n{}: {} frames of speech\n", picture,
                   landmarks ? "the points of the face" : "the pack's keypoints (no face found)",
                   job.output, report.frames);
    }
    return 0;
}

}  // namespace newscaster::cli
