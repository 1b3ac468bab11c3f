// A clip that is decoded beside the work on its pictures.
#pragma once

#include <cstddef>
#include <memory>

#include "media/clip_source.h"

namespace newscaster::media {

// The same pictures and errors in the same order; a thread of its own reads up to `pictures` (1 or
// more) ahead. The returned source is used from one thread at a time.
[[nodiscard]] std::unique_ptr<ClipSource> read_ahead(std::unique_ptr<ClipSource> clip,
                                                     size_t pictures = 2);

}  // namespace newscaster::media
