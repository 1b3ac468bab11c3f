#include "device/openvino/cpu_probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <openvino/runtime/properties.hpp>
#include <string_view>

namespace newscaster::device {

bool has_native_bf16(const std::vector<std::string>& capabilities) {
    if (std::ranges::find(capabilities, ov::device::capability::BF16) == capabilities.end()) {
        return false;
    }
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx512bf16") > 0;  // also set on every CPU with AMX
#else
    return true;
#endif
}

std::string instruction_sets() {
    std::string sets;
#if defined(__x86_64__)
    const auto add = [&](bool present, std::string_view name) {
        if (present) sets += fmt::format("{}{}", sets.empty() ? "" : " ", name);
    };
    add(__builtin_cpu_supports("sse4.2") > 0, "sse4.2");
    add(__builtin_cpu_supports("avx2") > 0, "avx2");
    add(__builtin_cpu_supports("fma") > 0, "fma");
    add(__builtin_cpu_supports("avx512f") > 0, "avx512f");
    add(__builtin_cpu_supports("avx512bw") > 0, "avx512bw");
    add(__builtin_cpu_supports("avx512vnni") > 0, "avx512vnni");
    add(__builtin_cpu_supports("avx512bf16") > 0, "avx512bf16");
#endif
    return sets;
}

uint64_t available_memory_bytes() {
    std::ifstream meminfo("/proc/meminfo");
    std::string key;
    uint64_t kibibytes = 0;
    std::string unit;
    while (meminfo >> key >> kibibytes >> unit) {
        if (key == "MemAvailable:") return kibibytes * 1024;
    }
    return 0;
}

}  // namespace newscaster::device
