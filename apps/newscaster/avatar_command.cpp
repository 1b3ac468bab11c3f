// newscaster avatar info|create [--preview].
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "avatar_options.h"
#include "commands.h"
#include "data_paths.h"
#include "engine_options.h"
#include "newscaster/error.h"
#include "newscaster/inspect.h"
#include "newscaster/registration.h"

namespace newscaster::cli {

namespace {

void print(const AvatarInfo& info, const GlobalOptions& global) {
    if (global.json) {
        const nlohmann::json json{{"name", info.name},
                                  {"title", info.title},
                                  {"license", info.license},
                                  {"pack", info.pack_name},
                                  {"avatar_key", info.avatar_key},
                                  {"width", info.width},
                                  {"height", info.height},
                                  {"source_frames", info.source_frames},
                                  {"tensor_bytes", info.tensor_bytes},
                                  {"verdict", info.verdict},
                                  {"advice", info.advice}};
        fmt::print("{}\n", json.dump(2));
        return;
    }
    fmt::print("{}: {}\nlicence        {}\npack           {} (avatar key {})\n", info.name,
               info.title, info.license, info.pack_name, info.avatar_key);
    fmt::print("canvas         {}x{}\nsource frames  {}\ntensors        {:.1f} MB\n", info.width,
               info.height, info.source_frames, static_cast<double>(info.tensor_bytes) / 1e6);
    if (!info.verdict.empty()) fmt::print("material       {}\n", info.verdict);
    for (const auto& sentence : info.advice) fmt::print("  - {}\n", sentence);
}

// Into the new avatar's own folder.
AvatarPreviewRequest preview_of(const AvatarCreateRequest& request) {
    AvatarPreviewRequest preview;
    preview.avatar = request.output;
    preview.output = (std::filesystem::path(request.output) / "preview").string();
    preview.pack = request.pack;
    preview.detectors = request.detectors;
    preview.provider = request.provider;
    preview.device = request.device;
    preview.threads = request.threads;
    preview.no_cache = request.no_cache;
    return preview;
}

}  // namespace

int run(const AvatarInfoRequest& request, const GlobalOptions& global) {
    print(describe_avatar(find_data("avatars", request.avatar)), global);
    return 0;
}

int run(const AvatarCreateRequest& request, const GlobalOptions& global) {
    if (request.preview && global.json) {
        throw Error(ErrorCode::bad_input,
                    "--preview and --json: wanted one of them; avatar preview has --json, too");
    }
    AvatarSource source = make_source(request);
    if (!source.crop && source.detectors.empty()) source.detectors = find_detectors();
    const EngineOptions options = base_engine_options(request, global);
    const AvatarInfo info = create_avatar(options, source);
    if (global.json || !global.quiet) print(info, global);
    return request.preview ? run(preview_of(request), global) : 0;
}

}  // namespace newscaster::cli
