// The options of newscaster forensics and what they mean to the library.
#pragma once

#include <CLI/CLI.hpp>

#include "newscaster/forensics.h"
#include "requests.h"

namespace newscaster::cli {

// Adds the options of the verb; parsing writes to `request`, which must outlive the verb.
void add_forensics_options(CLI::App& verb, ForensicsRequest& request);

// The job but for regions that have to be found. Throws Error(bad_input) for lists that are no
// boxes.
[[nodiscard]] ForensicsJob make_job(const ForensicsRequest& request);

}  // namespace newscaster::cli
