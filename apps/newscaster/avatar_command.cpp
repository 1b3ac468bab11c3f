// newscaster avatar info|create.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "avatar_options.h"
#include "commands.h"
#include "data_paths.h"
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

}  // namespace

int run(const AvatarInfoRequest& request, const GlobalOptions& global) {
    print(describe_avatar(find_data("avatars", request.avatar)), global);
    return 0;
}

int run(const AvatarCreateRequest& request, const GlobalOptions& global) {
    AvatarSource source = make_source(request);
    if (!source.crop && source.detectors.empty()) source.detectors = find_detectors();
    EngineOptions options;
    options.pack = find_data("packs", request.pack);
    options.provider = request.provider;
    options.device = request.device;
    options.threads = request.threads;
    options.use_cache = !request.no_cache;
    options.log = global.log_sink();
    const AvatarInfo info = create_avatar(options, source);
    if (global.json || !global.quiet) print(info, global);
    return 0;
}

}  // namespace newscaster::cli
