// Still pictures through libav (PNG, JPEG, WebP, ...): the content decides the format.
#pragma once

#include <cstdint>
#include <filesystem>

#include "core/stage_types.h"
#include "media/backdrop.h"

namespace newscaster::media {

// Larger pictures are refused before memory is taken for them.
struct PictureLimits {
    int side_px = 16384;
    int64_t pixels = 64LL << 20U;
    int shrink_to = 0;  // what is read has no longer side than this; 0: its own size
};

// Decodes one picture to 8-bit RGB, turned upright by its EXIF orientation; transparent pixels are
// blended over the backdrop, white if none is given. The first frame of an animation; a video of
// one frame is a picture, too. Throws Error(io), or Error(bad_input) naming the file: no picture,
// CMYK, a video, beyond the limits, all opaque where a backdrop is wanted.
[[nodiscard]] RgbImage read_image(const std::filesystem::path& file,
                                  const PictureLimits& limits = {}, const Backdrop& backdrop = {});

// Whether the file is a video of more than one picture; animations (GIF, APNG, WebP) count as
// pictures. Throws like read_image.
[[nodiscard]] bool is_clip(const std::filesystem::path& file, const PictureLimits& limits = {});

// The same picture, smaller (area averages), where a side is longer than `longest`; both sides stay
// at least 1. longest 0: as it is.
[[nodiscard]] RgbImage shrink(RgbImage image, int longest);

// PNG, written atomically. Throws Error(io).
void write_png(const std::filesystem::path& file, const RgbImage& image);

}  // namespace newscaster::media
