// The verbs of the program. Each function adds its options to the application and returns what runs
// when the verb was given; the result is the exit code. Failures are thrown as newscaster::Error.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>

#include "global_options.h"

namespace newscaster::cli {

using Action = std::function<int()>;

// Chosen verb; set by the callback of the parsed subcommand.
struct Dispatch {
    Action action;
};

void add_render_command(CLI::App& app, const GlobalOptions& global, Dispatch& dispatch);
void add_pack_command(CLI::App& app, const GlobalOptions& global, Dispatch& dispatch);
void add_avatar_command(CLI::App& app, const GlobalOptions& global, Dispatch& dispatch);
void add_doctor_command(CLI::App& app, const GlobalOptions& global, Dispatch& dispatch);

}  // namespace newscaster::cli
