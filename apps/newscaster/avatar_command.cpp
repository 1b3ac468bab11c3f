// newscaster avatar info.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "commands.h"
#include "data_paths.h"
#include "newscaster/inspect.h"

namespace newscaster::cli {

int run(const AvatarInfoRequest& request, const GlobalOptions& global) {
    const AvatarInfo info = describe_avatar(find_data("avatars", request.avatar));
    if (global.json) {
        const nlohmann::json json{{"name", info.name},
                                  {"title", info.title},
                                  {"license", info.license},
                                  {"pack", info.pack_name},
                                  {"avatar_key", info.avatar_key},
                                  {"width", info.width},
                                  {"height", info.height},
                                  {"source_frames", info.source_frames},
                                  {"tensor_bytes", info.tensor_bytes}};
        fmt::print("{}\n", json.dump(2));
        return 0;
    }
    fmt::print("{}: {}\nlicence        {}\npack           {} (avatar key {})\n", info.name,
               info.title, info.license, info.pack_name, info.avatar_key);
    fmt::print("canvas         {}x{}\nsource frames  {}\ntensors        {:.1f} MB\n", info.width,
               info.height, info.source_frames, static_cast<double>(info.tensor_bytes) / 1e6);
    return 0;
}

}  // namespace newscaster::cli
