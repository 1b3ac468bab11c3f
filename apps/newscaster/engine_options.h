// Options of every verb that opens an engine.
#pragma once

#include <CLI/CLI.hpp>

#include "data_paths.h"
#include "global_options.h"
#include "newscaster/engine.h"

namespace newscaster::cli {

// Request: has pack, provider and device.
template <typename Request>
void add_device_options(CLI::App& verb, Request& request) {
    verb.add_option("--pack", request.pack, "Model pack: bundled name or folder")
        ->type_name("PACK")
        ->capture_default_str();
    verb.add_option("--provider", request.provider, "auto (best that works here), cuda or cpu")
        ->type_name("NAME")
        ->capture_default_str();
    verb.add_option("--device", request.device, "Which GPU, counted from 0")
        ->check(CLI::Range(0, 1024))
        ->type_name("N")
        ->capture_default_str();
}

inline void add_threads_option(CLI::App& verb, int& threads) {
    verb.add_option("--threads", threads, "Compute threads, 0 = all cores")
        ->check(CLI::Range(0, 1024))
        ->type_name("N")
        ->capture_default_str();
}

// What they mean to the library. Request: also has no_cache. Throws Error(bad_pack) like find_data.
template <typename Request>
[[nodiscard]] EngineOptions base_engine_options(const Request& request,
                                                const GlobalOptions& global) {
    EngineOptions options;
    options.pack = find_data("packs", request.pack);
    options.provider = request.provider;
    options.device = request.device;
    options.threads = request.threads;
    options.use_cache = !request.no_cache;
    options.log = global.log_sink();
    return options;
}

}  // namespace newscaster::cli
