// Options every verb understands.
#pragma once

#include <memory>
#include <string>

#include "newscaster/types.h"

namespace newscaster::cli {

enum class ProgressMode { automatic, plain, none };

struct GlobalOptions {
    bool json = false;
    bool quiet = false;
    int verbosity = 0;
    ProgressMode progress = ProgressMode::automatic;
    std::string config;

    // Writes log lines to standard error: warnings by default, more with -v, errors with --quiet.
    [[nodiscard]] LogSink log_sink() const;
};

}  // namespace newscaster::cli
