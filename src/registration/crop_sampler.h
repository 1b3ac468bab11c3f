// Pixels of the crop: cut out of a picture, and as input of a network.
#pragma once

#include "core/stage_types.h"
#include "core/tensor.h"

namespace newscaster::registration {

// The square of crop_size x crop_size that the map finds on the picture, bilinear; where several
// picture pixels fall on one of the crop, the mean of as many samples. Black beyond the picture.
[[nodiscard]] RgbImage cut_crop(const RgbImage& picture, const Affine& crop_to_picture,
                                int crop_size);

// Area average of the picture as f32 [1, 3, height, width], RGB 0..1.
[[nodiscard]] Tensor to_network_image(const RgbImage& picture, int64_t height, int64_t width);

// The picture itself as u8 [1, 3, height, width].
[[nodiscard]] Tensor to_planes(const RgbImage& picture);

}  // namespace newscaster::registration
