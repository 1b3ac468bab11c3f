// Still pictures through libav (PNG, JPEG, WebP, ...): the content decides the format.
#pragma once

#include <filesystem>

#include "core/stage_types.h"

namespace newscaster::media {

// Decodes one picture to 8-bit RGB, turned upright by its EXIF orientation; transparent pixels are
// blended over white. The first frame of an animation; a video of one frame is a picture, too.
// Throws Error(io), or Error(bad_input) naming the file: no picture, CMYK, a video, more than
// 16384 pixels wide or high or 64 Mi pixels in all (refused before they are decoded).
[[nodiscard]] RgbImage read_image(const std::filesystem::path& file);

// PNG, written atomically. Throws Error(io).
void write_png(const std::filesystem::path& file, const RgbImage& image);

}  // namespace newscaster::media
