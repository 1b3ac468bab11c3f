// A presenter's clip as upright pictures at a wanted frame rate.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include "core/stage_types.h"
#include "media/image.h"
#include "newscaster/types.h"

namespace newscaster::media {

// One pass over one file with constant memory. The container's rotation is applied, pixels are made
// square (nothing is made smaller), interlaced frames get the lines of their first field, other
// depths and layouts become 8-bit RGB, transparent parts show the backdrop, HDR (PQ, HLG) becomes
// SDR. Not thread-safe.
class ClipSource {
  public:
    // fps: of the pictures read. Throws Error(io), or Error(bad_input): no video, a codec that
    // libav does not know, mirrored by its display matrix.
    static std::unique_ptr<ClipSource> open(const std::filesystem::path& file, Rational fps,
                                            const PictureLimits& limits = {},
                                            const Backdrop& backdrop = {});
    virtual ~ClipSource() = default;

    // Picture k is what the clip shows k / fps after its first frame, by the timestamps in the
    // container; nullopt at the end. Throws Error(bad_input) where data is damaged or the size
    // changes.
    virtual std::optional<RgbImage> read() = 0;
};

}  // namespace newscaster::media
