// The machine a benchmark ran on, and how busy it was meanwhile.
#pragma once

#include <nlohmann/json.hpp>

namespace newscaster::bench {

// CPU, cores, memory, kernel, compiler and UTC date; no host name.
[[nodiscard]] nlohmann::json describe_machine();

// Core-seconds that all processes together have used since boot (user, system, interrupts).
// Linux' /proc/stat; 0 where there is none.
[[nodiscard]] double machine_busy_s();

}  // namespace newscaster::bench
