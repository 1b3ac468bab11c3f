#include "decode/crop_blend.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

namespace newscaster::decode {

namespace {

constexpr double kMotionSigma = 0.12;  // crop half widths
constexpr double kRestWeight = 0.5;    // of the standstill, against the bells' peaks of 1
constexpr int64_t kPadding = 2;        // pixels around a plane that the interpolation reads

// Four floats that compilers keep in one register.
using Float4 = float __attribute__((vector_size(16)));

Float4 load(const float* from) {
    Float4 value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

// Weights of the pixels at -1, 0, 1, 2 for a position `f` after 0 (Catmull & Rom 1974).
Float4 catmull_rom(float f) {
    const float f2 = f * f;
    const float f3 = f2 * f;
    return Float4{-0.5F * f + f2 - 0.5F * f3, 1.0F - 2.5F * f2 + 1.5F * f3,
                  0.5F * f + 2.0F * f2 - 1.5F * f3, -0.5F * f2 + 0.5F * f3};
}

OffsetGrids offsets(std::span<const float> keypoints, std::span<const float> key,
                    const std::vector<double>& bells, int64_t size) {
    constexpr size_t kCells = OffsetGrids::kGrid * OffsetGrids::kGrid;
    const size_t count = keypoints.size() / 3;
    OffsetGrids grids{std::vector<float>(kCells), std::vector<float>(kCells)};
    for (size_t cell = 0; cell < kCells; ++cell) {
        const double* bell = bells.data() + cell * count;
        double total = kRestWeight;
        double x = 0.0;
        double y = 0.0;
        for (size_t k = 0; k < count; ++k) {
            total += bell[k];
            x += bell[k] * (static_cast<double>(key[3 * k]) - keypoints[3 * k]);
            y += bell[k] * (static_cast<double>(key[3 * k + 1]) - keypoints[3 * k + 1]);
        }
        const double pixels = 0.5 * static_cast<double>(size) / total;
        grids.x[cell] = static_cast<float>(pixels * x);
        grids.y[cell] = static_cast<float>(pixels * y);
    }
    return grids;
}

// A copy of the planes whose borders continue the outermost pixels.
class PaddedCrop {
  public:
    PaddedCrop(std::span<const float> crop, int64_t size)
        : line_(size + 2 * kPadding), plane_(line_ * line_), values_(3 * plane_) {
        for (int64_t channel = 0; channel < 3; ++channel) {
            for (int64_t y = 0; y < line_; ++y) {
                const int64_t from_y = std::clamp<int64_t>(y - kPadding, 0, size - 1);
                const float* from = crop.data() + (channel * size + from_y) * size;
                float* to = values_.data() + channel * plane_ + y * line_;
                for (int64_t x = 0; x < kPadding; ++x) to[x] = from[0];
                std::copy_n(from, size, to + kPadding);
                for (int64_t x = size + kPadding; x < line_; ++x) to[x] = from[size - 1];
            }
        }
    }

    // Adds share * the colour at pixel position (x, y), kept within the crop, to out.
    void add(float x, float y, float share, std::array<float, 3>& out) const {
        const auto most = static_cast<float>(line_ - 2 * kPadding - 1);
        x = std::clamp(x, 0.0F, most);
        y = std::clamp(y, 0.0F, most);
        const auto left = static_cast<int64_t>(x);
        const auto top = static_cast<int64_t>(y);
        const Float4 wx = catmull_rom(x - static_cast<float>(left));
        const Float4 wy = catmull_rom(y - static_cast<float>(top)) * share;
        const float* corner = values_.data() + (top + kPadding - 1) * line_ + left + kPadding - 1;
        for (size_t channel = 0; channel < 3; ++channel, corner += plane_) {
            const Float4 sum =
                (load(corner) * wy[0] + load(corner + line_) * wy[1]) +
                (load(corner + 2 * line_) * wy[2] + load(corner + 3 * line_) * wy[3]);
            const Float4 row = sum * wx;
            out[channel] += (row[0] + row[1]) + (row[2] + row[3]);
        }
    }

  private:
    int64_t line_;
    int64_t plane_;
    std::vector<float> values_;
};

}  // namespace

std::vector<OffsetGrids> crop_offsets(std::span<const float> keypoints,
                                      const std::vector<std::span<const float>>& keys,
                                      int64_t size) {
    const auto bells = keypoint_bells(keypoints, OffsetGrids::kGrid, kMotionSigma);
    std::vector<OffsetGrids> result;
    result.reserve(keys.size());
    for (const auto& key : keys) result.push_back(offsets(keypoints, key, bells, size));
    return result;
}

std::vector<float> blend_crops(std::span<const float> keypoints, const std::vector<CropKey>& keys,
                               const ShareMaps& shares, int64_t size) {
    struct Layer {
        PaddedCrop crop;
        std::array<std::vector<float>, 2> offset;
        std::vector<float> share;
    };
    std::vector<std::span<const float>> moved;
    moved.reserve(keys.size());
    for (const auto& key : keys) moved.push_back(key.keypoints);
    const auto grids = crop_offsets(keypoints, moved, size);
    const auto upsampled = [size](const std::vector<float>& grid) {
        return upsample_grid(grid, OffsetGrids::kGrid, size, size);
    };
    std::vector<Layer> layers;
    layers.reserve(keys.size());
    for (size_t i = 0; i < keys.size(); ++i) {
        layers.push_back({PaddedCrop(keys[i].crop, size),
                          {upsampled(grids[i].x), upsampled(grids[i].y)},
                          shares.map(i, size, size)});
    }
    const auto plane = static_cast<size_t>(size * size);
    std::vector<float> result(3 * plane);
    for (int64_t y = 0; y < size; ++y) {
        for (int64_t x = 0; x < size; ++x) {
            const auto at = static_cast<size_t>(y * size + x);
            std::array<float, 3> colour{};
            for (const Layer& layer : layers) {
                layer.crop.add(static_cast<float>(x) + layer.offset[0][at],
                               static_cast<float>(y) + layer.offset[1][at], layer.share[at],
                               colour);
            }
            for (size_t channel = 0; channel < 3; ++channel) {
                result[channel * plane + at] = std::clamp(colour[channel], 0.0F, 1.0F);
            }
        }
    }
    return result;
}

}  // namespace newscaster::decode
