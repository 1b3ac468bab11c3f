// Decoded frames as upright 8-bit RGB. Private to this room.
#pragma once

#include <optional>

#include "core/stage_types.h"
#include "media/av_ptr.h"
#include "media/tone_map.h"

namespace newscaster::media {

// Not thread-safe.
class RgbConverter {
  public:
    // The frame in this size, full range; transparent pixels are blended over white, HDR is mapped
    // to SDR. untagged_matrix: SWS_CS_... of frames that name none.
    [[nodiscard]] RgbImage convert(const AVFrame& frame, int width, int height,
                                   int untagged_matrix);

  private:
    std::optional<ToneMap> tone_map_;  // of the last HDR frame
};

// Turned and mirrored as an EXIF orientation, 1 (upright) to 8, asks for.
[[nodiscard]] RgbImage make_upright(RgbImage image, int orientation);

}  // namespace newscaster::media
