// Where the crop lies on the picture, as the map that paste-back uses.
#pragma once

#include "core/stage_types.h"
#include "newscaster/registration.h"

namespace newscaster::registration {

// Throws Error(bad_input) unless all values are finite, the square is 16 to 32768 pixels wide and
// its centre is on a picture of this size.
void check_crop_box(const CropBox& box, int width, int height);

[[nodiscard]] bool is_centred_on(const CropBox& box, int width, int height);

// Crop pixels (a square of crop_size) to picture pixels, both continuous with centres at +0.5.
// Without an angle the map is exactly a scale and a shift.
[[nodiscard]] Affine crop_to_picture(const CropBox& box, int crop_size);

}  // namespace newscaster::registration
