// The options of newscaster render and what they mean to the library.
#pragma once

#include <CLI/CLI.hpp>

#include "newscaster/render.h"
#include "requests.h"

namespace newscaster::cli {

// Adds the options of the verb; parsing writes to `request`, which must outlive the verb.
void add_render_options(CLI::App& verb, RenderRequest& request);

// The job of a request; log and everything of the engine is left to the caller. Throws
// Error(bad_input) for a seed that is none and for options of later versions.
[[nodiscard]] RenderJob make_job(const RenderRequest& request);

}  // namespace newscaster::cli
