#include "machine.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <ctime>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <thread>

namespace newscaster::bench {

namespace {

// "key : value" lines of a /proc file; the first of each key.
std::map<std::string, std::string> read_fields(const char* file) {
    std::ifstream stream(file);
    std::map<std::string, std::string> fields;
    std::string line;
    while (std::getline(stream, line)) {
        const auto colon = line.find(':');
        if (colon == std::string::npos) continue;
        const auto key = line.substr(0, line.find_last_not_of(" \t", colon - 1) + 1);
        const auto first = line.find_first_not_of(" \t", colon + 1);
        fields.emplace(key, first == std::string::npos ? "" : line.substr(first));
    }
    return fields;
}

// Those vector extensions that change how fast the graphs and the compositor run.
std::string vector_extensions(const std::string& flags) {
    std::string found;
    std::istringstream stream(flags);
    std::string flag;
    while (stream >> flag) {
        if (flag == "avx2" || flag == "avx512f" || flag == "avx512_bf16" || flag == "avx512_vnni" ||
            flag == "amx_bf16" || flag == "amx_int8") {
            found += (found.empty() ? "" : " ") + flag;
        }
    }
    return found;
}

}  // namespace

nlohmann::json describe_machine() {
    auto cpu = read_fields("/proc/cpuinfo");
    utsname system{};
    ::uname(&system);
    const auto memory = static_cast<double>(::sysconf(_SC_PHYS_PAGES)) *
                        static_cast<double>(::sysconf(_SC_PAGE_SIZE));
    return {{"cpu", cpu["model name"]},
            {"cpu_family", cpu["cpu family"]},
            {"cpu_model", cpu["model"]},
            {"vector_extensions", vector_extensions(cpu["flags"])},
            {"cores", std::thread::hardware_concurrency()},
            {"memory_gib", memory / (1U << 30U)},
            {"kernel", fmt::format("{} {}", system.sysname, system.release)},
            {"compiler", NEWSCASTER_COMPILER},
            {"date", fmt::format("{:%Y-%m-%d %H:%M} UTC", fmt::gmtime(std::time(nullptr)))}};
}

double machine_busy_s() {
    std::ifstream stream("/proc/stat");
    std::string word;
    double user = 0;
    double nice = 0;
    double system = 0;
    double idle = 0;
    double io_wait = 0;
    double interrupts = 0;
    double soft_interrupts = 0;
    stream >> word >> user >> nice >> system >> idle >> io_wait >> interrupts >> soft_interrupts;
    const auto ticks = user + nice + system + interrupts + soft_interrupts;
    return ticks / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

}  // namespace newscaster::bench
