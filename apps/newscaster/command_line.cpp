#include "command_line.h"

#include <map>

#include "avatar_options.h"
#include "forensics_options.h"
#include "render_options.h"
#include "settings.h"
#include "sync_options.h"

namespace newscaster::cli {

namespace {

constexpr const char* kFooter =
    "Examples:\n"
    "  newscaster render speech.wav                    anna speaks it, speech.mp4\n"
    "  newscaster render news.mp3 -a marcus -o out.mp4\n"
    "  newscaster avatar create me.jpg -o me           your own presenter from a picture\n"
    "  newscaster doctor                               what this machine can run\n"
    "\n"
    "Values come from defaults, a TOML file (--config), NEWSCASTER_* variables and flags;\n"
    "the later wins. Exit codes: 0 ok, 1 failed, 2 usage or bad input, 3 bad pack or avatar,\n"
    "4 device unavailable, 5 cannot read or write, 130 interrupted.";

}  // namespace

CommandLine::CommandLine(const std::string& version)
    : app_("newscaster: speech audio and an avatar in, video of the avatar speaking out") {
    app_.name("newscaster");
    app_.footer(kFooter);
    app_.require_subcommand(1);
    app_.fallthrough();
    app_.set_version_flag("--version", "newscaster " + version, "Print the version");
    add_global_options();
    CLI::App* render = app_.add_subcommand("render", "Render speech audio as video of an avatar");
    add_render_options(*render, render_);
    render->callback([this] { chosen_ = render_; });
    add_pack_verb();
    add_avatar_verb();
    CLI::App* forensics = app_.add_subcommand(
        "forensics", "Compare videos with a reference, in numbers and pictures");
    add_forensics_options(*forensics, forensics_);
    forensics->callback([this] { chosen_ = forensics_; });
    CLI::App* sync = app_.add_subcommand("sync", "Measure whether lips and sound fit, for CI");
    add_sync_options(*sync, sync_);
    sync->callback([this] { chosen_ = sync_; });
    app_.add_subcommand("doctor", "Say what this machine can run, with advice")->callback([this] {
        chosen_ = DoctorRequest();
    });
    name_environment_variables(app_);
}

void CommandLine::add_global_options() {
    app_.add_option("--config", global_.config, "TOML file with option values")->type_name("FILE");
    app_.add_flag("--json", global_.json, "Print results as JSON on standard output");
    app_.add_flag("-q,--quiet", global_.quiet, "Print errors only");
    app_.add_flag("-v,--verbose", global_.verbosity, "Say more; twice for everything");
    const std::map<std::string, ProgressMode> modes{{"auto", ProgressMode::automatic},
                                                    {"plain", ProgressMode::plain},
                                                    {"none", ProgressMode::none}};
    app_.add_option("--progress", global_.progress,
                    "auto (a bar on a terminal), plain (lines), none")
        ->transform(CLI::CheckedTransformer(modes, CLI::ignore_case).description(""))
        ->type_name("MODE");
}

void CommandLine::add_pack_verb() {
    CLI::App* verb = app_.add_subcommand("pack", "Look at a model pack");
    verb->require_subcommand(1);
    const auto add = [&](const char* name, const char* help, auto& request) {
        CLI::App* task = verb->add_subcommand(name, help);
        task->add_option("pack", request.pack, "Bundled name or folder")
            ->type_name("PACK")
            ->capture_default_str();
        task->callback([this, &request] { chosen_ = request; });
        return task;
    };
    add("info", "Print what a pack holds", pack_info_);
    add("verify", "Check every file's hash and every graph against the manifest", pack_verify_);
    CLI::App* plan =
        add("plan", "Print what a GPU would run for every graph; needs no GPU", pack_plan_);
    plan->add_option("--provider", pack_plan_.provider, "Whose plan: cuda")
        ->check(CLI::IsMember({"cuda"}))
        ->type_name("NAME")
        ->capture_default_str();
    plan->add_option("--precision", pack_plan_.precision, "Of the renderer: f16 or f32")
        ->type_name("NAME")
        ->capture_default_str();
    plan->add_option("--batch-size,--batch_size", pack_plan_.batch_size, "Frames drawn by one run")
        ->type_name("N")
        ->capture_default_str();
    plan->add_option("--capability", pack_plan_.capability, "Compute capability of the GPU")
        ->type_name("X.Y")
        ->capture_default_str();
}

void CommandLine::add_avatar_verb() {
    CLI::App* verb = app_.add_subcommand("avatar", "Make an avatar or look at one");
    verb->require_subcommand(1);
    CLI::App* info = verb->add_subcommand("info", "Print what an avatar holds");
    info->add_option("avatar", avatar_info_.avatar, "Bundled name or folder")
        ->type_name("AVATAR")
        ->capture_default_str();
    info->callback([this] { chosen_ = avatar_info_; });
    CLI::App* preview =
        verb->add_subcommand("preview", "Draw an avatar's face and mask, and let it talk for 3 s");
    add_preview_options(*preview, avatar_preview_);
    preview->callback([this] { chosen_ = avatar_preview_; });
    CLI::App* create = verb->add_subcommand("create", "Make an avatar of a picture");
    add_avatar_options(*create, avatar_create_);
    create->callback([this] { chosen_ = avatar_create_; });
}

Invocation CommandLine::parse(int argc, const char* const* argv) {
    if (const auto file = find_config_file(argc, argv); !file.empty()) {
        apply_config_file(app_, file);
    }
    app_.parse(argc, argv);
    return {global_, chosen_};
}

int CommandLine::print(const CLI::Success& asked) const {
    return app_.exit(asked);
}

}  // namespace newscaster::cli
