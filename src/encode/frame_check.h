// What every writer asks of the frames it gets. Private to this room.
#pragma once

#include <cstdint>

#include "newscaster/types.h"

namespace newscaster::encode {

// Throws Error(runtime) unless the frame has this index and size.
void check_frame(const VideoFrame& frame, int64_t index, int width, int height);

// Throws Error(bad_input) unless both are even and positive.
void check_size(int width, int height);

}  // namespace newscaster::encode
