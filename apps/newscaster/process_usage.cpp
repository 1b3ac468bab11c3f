#include "process_usage.h"

#include <sys/resource.h>

namespace newscaster::cli {

ProcessUsage process_usage() {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
    };
    return {.peak_rss_bytes = static_cast<uint64_t>(usage.ru_maxrss) << 10U,
            .cpu_s = seconds(usage.ru_utime) + seconds(usage.ru_stime)};
}

}  // namespace newscaster::cli
