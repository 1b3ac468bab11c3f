// What the machine's CPU and memory offer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace newscaster::device {

// capabilities: the CPU plugin's list. It may name bf16 where bf16 is only emulated, which is
// slower than f32; those machines do not count.
[[nodiscard]] bool has_native_bf16(const std::vector<std::string>& capabilities);

// Instruction sets that compiled graphs may depend on, e.g. "sse4.2 avx2"; the CPU's name alone
// does not tell, virtual machines mask features.
[[nodiscard]] std::string instruction_sets();

// Memory that can be had without swapping; 0 = not known.
[[nodiscard]] uint64_t available_memory_bytes();

}  // namespace newscaster::device
