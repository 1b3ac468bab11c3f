// Reproducible noise: Philox4x32-10 (Salmon et al., SC'11) counters mapped to N(0,1) by Box-Muller.
// The same (seed, row, column) gives the same value on every machine and provider.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace newscaster::motion {

// One Philox4x32-10 block.
[[nodiscard]] std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter,
                                                 std::array<uint32_t, 2> key);

// Fills `row` with the noise of absolute video frame `frame` for `stream` (0 = initial latent;
// stochastic samplers use 1, 2, ... per step). docs/noise.md defines the mapping.
void normal_row(uint64_t seed, int64_t frame, uint32_t stream, std::span<float> row);

}  // namespace newscaster::motion
