// Decoded frames as upright 8-bit RGB. Private to this room.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "core/stage_types.h"
#include "media/av_ptr.h"
#include "media/backdrop.h"
#include "media/tone_map.h"

namespace newscaster::media {

// Not thread-safe.
class RgbConverter {
  public:
    // backdrop: what shows through transparent parts, turned the way the frames lie (`orientation`,
    // what makes the frames upright).
    RgbConverter() = default;
    RgbConverter(Backdrop backdrop, int orientation)
        : backdrop_(std::move(backdrop)), orientation_(orientation) {}

    // The frame in this size, full range; transparent pixels are blended over the backdrop, HDR is
    // mapped to SDR. untagged_matrix: SWS_CS_... of frames that name none. Throws Error(bad_input)
    // for a frame that no backdrop can show through, where one is wanted; `name` is the file's.
    [[nodiscard]] RgbImage convert(const AVFrame& frame, int width, int height, int untagged_matrix,
                                   const std::string& name);

  private:
    [[nodiscard]] const RgbImage& behind(int width, int height);

    Backdrop backdrop_;
    int orientation_ = 1;
    RgbImage behind_;                  // the backdrop in the last frame's size
    std::optional<ToneMap> tone_map_;  // of the last HDR frame
};

// Turned and mirrored as an EXIF orientation, 1 (upright) to 8, asks for.
[[nodiscard]] RgbImage make_upright(RgbImage image, int orientation);

}  // namespace newscaster::media
