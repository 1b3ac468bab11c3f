// Command line of `newscaster sync`.
#pragma once

#include <CLI/CLI.hpp>

#include "newscaster/sync.h"
#include "requests.h"

namespace newscaster::cli {

void add_sync_options(CLI::App& verb, SyncRequest& request);

// Without folders of data: these are looked up where they are needed.
[[nodiscard]] SyncJob make_job(const SyncRequest& request);

}  // namespace newscaster::cli
