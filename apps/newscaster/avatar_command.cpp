// newscaster avatar info.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "commands.h"
#include "data_paths.h"
#include "newscaster/inspect.h"

namespace newscaster::cli {

namespace {

int show_info(const std::string& avatar, const GlobalOptions& global) {
    const AvatarInfo info = describe_avatar(find_data("avatars", avatar));
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

}  // namespace

void add_avatar_command(CLI::App& app, const GlobalOptions& global, Dispatch& dispatch) {
    CLI::App* verb = app.add_subcommand("avatar", "Look at an avatar");
    verb->require_subcommand(1);
    auto avatar = std::make_shared<std::string>("anna");
    CLI::App* info = verb->add_subcommand("info", "Print what an avatar holds");
    info->add_option("avatar", *avatar, "Bundled name or folder")
        ->type_name("AVATAR")
        ->capture_default_str();
    info->callback([avatar, &global, &dispatch] {
        dispatch.action = [avatar, &global] { return show_info(*avatar, global); };
    });
}

}  // namespace newscaster::cli
