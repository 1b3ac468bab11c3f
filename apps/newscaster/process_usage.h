// What this process used.
#pragma once

#include <cstdint>

namespace newscaster::cli {

struct ProcessUsage {
    uint64_t peak_rss_bytes = 0;
    double cpu_s = 0.0;  // user + system, all threads
};

[[nodiscard]] ProcessUsage process_usage();

}  // namespace newscaster::cli
