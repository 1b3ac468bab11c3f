// The options of newscaster avatar create and preview and what they mean to the library.
#pragma once

#include <CLI/CLI.hpp>

#include "newscaster/registration.h"
#include "requests.h"

namespace newscaster::cli {

// Adds the options of the verb; parsing writes to `request`, which must outlive the verb.
void add_avatar_options(CLI::App& verb, AvatarCreateRequest& request);

void add_preview_options(CLI::App& verb, AvatarPreviewRequest& request);

// The picture and what to make of it. Throws Error(bad_input) for lists that are no numbers.
[[nodiscard]] AvatarSource make_source(const AvatarCreateRequest& request);

}  // namespace newscaster::cli
