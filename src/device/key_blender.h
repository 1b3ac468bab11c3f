// Frames in between, made on a device out of what keyframes left there (core/keypoint_blend.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "device/device.h"

namespace newscaster::device {

// Immutable; safe for several threads, each with its own stream. All values are f32 on the device.
class KeyBlender {
  public:
    static constexpr size_t kMostParts = 6;

    // One entry along the first axis of a buffer.
    struct Entry {
        Buffer* buffer = nullptr;
        size_t index = 0;
    };
    // One square grid over the crop per part, rows first; part i's begins `stride` floats after
    // that of part i - 1. Interpolated as newscaster::upsample_grid does.
    struct Grids {
        Buffer* buffer = nullptr;
        size_t first = 0;  // float where part 0's begins
        size_t stride = 0;
        int64_t size = 1;
    };

    virtual ~KeyBlender() = default;

    // target = sum over the parts of share times value. The last two axes of entries of rank 3 and
    // above lie over the crop; others take the same share everywhere (grids of size 1). Throws
    // Error(runtime) for entries of different sizes, too many parts, or what lies outside a buffer.
    virtual void mix(const std::vector<Entry>& parts, const Grids& shares, const Entry& target,
                     Stream& stream) const = 0;

    // The same for pictures [n, 3, size, size] in 0..1 that move: every part is read at the pixel
    // plus its offset (x, y in pixels; Catmull-Rom, borders go on), the sum is kept in 0..1.
    virtual void move(const std::vector<Entry>& parts, const Grids& shares, const Grids& x,
                      const Grids& y, const Entry& target, Stream& stream) const = 0;
};

}  // namespace newscaster::device
