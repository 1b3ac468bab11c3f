// The crop of a frame in between from the decoded crops of the keyframes around it: each is moved
// along with the keypoints, then they are mixed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/keypoint_blend.h"

namespace newscaster::decode {

struct CropKey {
    std::span<const float> keypoints;  // [K*3]
    std::span<const float> crop;       // planar RGB [3, size, size]
};

// Where a key shows what the frame shows, at the cells of a square grid over the crop.
struct OffsetGrids {
    static constexpr int64_t kGrid = 64;
    std::vector<float> x;  // [kGrid, kGrid], pixels
    std::vector<float> y;
};

// Of every key's keypoints against the frame's, both [K*3]; size: of the crop in pixels.
[[nodiscard]] std::vector<OffsetGrids> crop_offsets(std::span<const float> keypoints,
                                                    const std::vector<std::span<const float>>& keys,
                                                    int64_t size);

// Planar RGB [3, size, size] in 0..1 of a frame with these driving keypoints. Motion between the
// keypoints is a bell-weighted mean of theirs that fades to rest far from all of them; pixels are
// taken by Catmull-Rom interpolation. shares: of the same keys. Same bytes on every CPU.
[[nodiscard]] std::vector<float> blend_crops(std::span<const float> keypoints,
                                             const std::vector<CropKey>& keys,
                                             const ShareMaps& shares, int64_t size);

}  // namespace newscaster::decode
