// The `newscaster` program: parses the command line, runs one verb, turns failures into exit codes.
#include <fmt/format.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <exception>
#include <map>
#include <string>

#include "commands.h"
#include "interrupt.h"
#include "newscaster/error.h"
#include "newscaster/inspect.h"
#include "settings.h"

namespace newscaster::cli {

LogSink GlobalOptions::log_sink() const {
    auto level = spdlog::level::warn;
    if (quiet) {
        level = spdlog::level::err;
    } else if (verbosity > 0) {
        level = verbosity == 1 ? spdlog::level::info : spdlog::level::debug;
    }
    auto logger = std::make_shared<spdlog::logger>(
        "newscaster", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    logger->set_level(level);
    logger->set_pattern("newscaster: %^%l%$: %v");
    return [logger](LogLevel severity, std::string_view line) {
        switch (severity) {
            case LogLevel::debug:
                logger->debug("{}", line);
                break;
            case LogLevel::info:
                logger->info("{}", line);
                break;
            case LogLevel::warning:
                logger->warn("{}", line);
                break;
            case LogLevel::error:
                logger->error("{}", line);
                break;
        }
    };
}

namespace {

constexpr const char* kFooter =
    "Examples:\n"
    "  newscaster render speech.wav                    anna speaks it, speech.mp4\n"
    "  newscaster render news.mp3 -a marcus -o out.mp4\n"
    "  newscaster doctor                               what this machine can run\n"
    "\n"
    "Values come from defaults, a TOML file (--config), NEWSCASTER_* variables and flags;\n"
    "the later wins. Exit codes: 0 ok, 1 failed, 2 usage or bad input, 3 bad pack or avatar,\n"
    "4 device unavailable, 5 cannot read or write, 130 interrupted.";

void add_global_options(CLI::App& app, GlobalOptions& global) {
    app.set_version_flag("--version", "newscaster " + version(), "Print the version");
    app.add_option("--config", global.config, "TOML file with option values")->type_name("FILE");
    app.add_flag("--json", global.json, "Print results as JSON on standard output");
    app.add_flag("-q,--quiet", global.quiet, "Print errors only");
    app.add_flag("-v,--verbose", global.verbosity, "Say more; twice for everything");
    const std::map<std::string, ProgressMode> modes{{"auto", ProgressMode::automatic},
                                                    {"plain", ProgressMode::plain},
                                                    {"none", ProgressMode::none}};
    app.add_option("--progress", global.progress, "auto (a bar on a terminal), plain (lines), none")
        ->transform(CLI::CheckedTransformer(modes, CLI::ignore_case).description(""))
        ->type_name("MODE");
}

int fail(const Error& error) {
    const std::string stage = error.stage().empty() ? "" : error.stage() + ": ";
    const bool show_stage = error.code() == ErrorCode::runtime;
    fmt::print(stderr, "newscaster: {}{}\n", show_stage ? stage : "", error.what());
    return static_cast<int>(error.code());
}

int run(int argc, char** argv) {
    install_interrupt_handlers();
    CLI::App app{"newscaster: speech audio and an avatar in, video of the avatar speaking out"};
    app.name("newscaster");
    app.footer(kFooter);
    app.require_subcommand(1);
    app.fallthrough();
    GlobalOptions global;
    Dispatch dispatch;
    add_global_options(app, global);
    add_render_command(app, global, dispatch);
    add_pack_command(app, global, dispatch);
    add_avatar_command(app, global, dispatch);
    add_doctor_command(app, global, dispatch);
    name_environment_variables(app);
    try {
        if (const auto file = find_config_file(argc, argv); !file.empty()) {
            apply_config_file(app, file);
        }
        app.parse(argc, argv);
        return dispatch.action();
    } catch (const CLI::Success& help) {
        return app.exit(help);
    } catch (const CLI::ParseError& error) {
        fmt::print(stderr, "newscaster: {}; see newscaster --help\n", error.what());
        return static_cast<int>(ErrorCode::bad_input);
    } catch (const Error& error) {
        return fail(error);
    }
}

}  // namespace
}  // namespace newscaster::cli

int main(int argc, char** argv) {
    try {
        return newscaster::cli::run(argc, argv);
    } catch (const std::exception& exception) {
        std::fprintf(stderr, "newscaster: %s\n", exception.what());
        return 1;
    }
}
