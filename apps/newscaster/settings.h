// Where option values come from: defaults < TOML file < NEWSCASTER_* variables < flags.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace newscaster::cli {

// Gives every long option its variable: --export-motion of any verb reads NEWSCASTER_EXPORT_MOTION.
void name_environment_variables(CLI::App& app);

// Reads a TOML file and makes its values the options' defaults. Top-level keys are global options,
// a table per verb holds that verb's ([render] crf = 20). Throws Error(bad_input) naming file and
// key for an unknown key or a value the option refuses.
void apply_config_file(CLI::App& app, const std::string& file);

// --config's value, found before parsing; else $NEWSCASTER_CONFIG; else "".
[[nodiscard]] std::string find_config_file(int argc, const char* const* argv);

}  // namespace newscaster::cli
