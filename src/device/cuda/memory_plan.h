// Places the intermediate values of a plan in one arena.
#pragma once

#include "device/cuda/plan.h"

namespace newscaster::device::cuda {

// Two values share bytes only when no step needs both. Largest values are placed first, each at the
// lowest free offset, aligned to 256 bytes. Fills arena_offset and the byte counts.
void plan_memory(Plan& plan);

}  // namespace newscaster::device::cuda
