#include "composite/kernels.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "composite/compositor.h"
#include "newscaster/error.h"

namespace newscaster::composite {

std::vector<const Kernels*> runnable_kernels() {
    std::vector<const Kernels*> sets;
#if defined(NEWSCASTER_COMPOSITE_X86)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
        sets.push_back(&avx512_kernels());
    }
    if (__builtin_cpu_supports("avx2")) sets.push_back(&avx2_kernels());
    sets.push_back(&sse2_kernels());
#endif
    sets.push_back(&portable_kernels());
    return sets;
}

const Kernels& find_kernels(std::string_view name) {
    for (const Kernels* set : runnable_kernels()) {
        if (name.empty() || set->name == name) return *set;
    }
    throw Error(ErrorCode::bad_input, fmt::format("kernel: found {}, wanted one of {}", name,
                                                  fmt::join(available_kernels(), ", ")));
}

std::vector<std::string> available_kernels() {
    std::vector<std::string> names;
    for (const Kernels* set : runnable_kernels()) names.emplace_back(set->name);
    return names;
}

}  // namespace newscaster::composite
