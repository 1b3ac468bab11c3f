// Decoded frames as upright 8-bit RGB. Private to this room.
#pragma once

#include "core/stage_types.h"
#include "media/av_ptr.h"

namespace newscaster::media {

// The frame in this size, full range; transparent pixels are blended over white. untagged_matrix:
// SWS_CS_... of frames that name none.
[[nodiscard]] RgbImage to_rgb(const AVFrame& frame, int width, int height, int untagged_matrix);

// Turned and mirrored as an EXIF orientation, 1 (upright) to 8, asks for.
[[nodiscard]] RgbImage make_upright(RgbImage image, int orientation);

}  // namespace newscaster::media
