#include "device/openvino/grid_sample.h"

#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace newscaster::device {

namespace {

constexpr int kTile = 16;       // output points handled together
constexpr int kChannels = 64;   // channels handled together: the tile stays in the L1 cache
constexpr int64_t kGrain = 16;  // tiles per task at least

// One axis of a tile: the two neighbours of each point and their weights.
struct AxisTaps {
    std::array<std::array<int64_t, kTile>, 2> index;  // in range, multiplied by the axis' stride
    std::array<std::array<float, kTile>, 2> weight;   // 0 where the neighbour is outside
};

double reflect(double x, double low, double span) {
    if (span <= 0.0) return low;
    const double folded = std::fmod(std::abs(x - low), 2.0 * span);
    return low + (folded > span ? 2.0 * span - folded : folded);
}

// Voxel coordinate of one grid value, moved to where the padding rule finds its voxels. Lies in
// [-1, size] for zeros, else in [0, size - 1], also for NaN and infinities.
double place(const GridSampleRule& rule, float value, double size) {
    const double g = value;
    double x = rule.align_corners ? (g + 1.0) * 0.5 * (size - 1.0) : ((g + 1.0) * size - 1.0) * 0.5;
    if (rule.padding == SamplePadding::reflection) {
        x = rule.align_corners ? reflect(x, 0.0, size - 1.0) : reflect(x, -0.5, size);
    }
    const bool zeros = rule.padding == SamplePadding::zeros;
    const double low = zeros ? -1.0 : 0.0;
    const double high = zeros ? size : size - 1.0;
    x = x > low ? x : low;  // written so that NaN takes the bound
    return x < high ? x : high;
}

// grid: first point's value of this axis; points are 3 values apart.
void find_taps(const GridSampleRule& rule, const float* grid, int points, int64_t size,
               int64_t stride, AxisTaps& taps) {
    for (int i = 0; i < points; ++i) {
        const double x = place(rule, grid[3 * i], static_cast<double>(size));
        const double below = rule.mode == SampleMode::nearest ? std::nearbyint(x) : std::floor(x);
        const auto first = static_cast<int64_t>(below);
        const auto fraction = static_cast<float>(x - below);
        const std::array<float, 2> weight = rule.mode == SampleMode::nearest
                                                ? std::array<float, 2>{1.0F, 0.0F}
                                                : std::array<float, 2>{1.0F - fraction, fraction};
        for (int64_t side = 0; side < 2; ++side) {
            const int64_t index = first + side;
            const bool inside = index >= 0 && index < size;
            taps.index[side][i] = std::clamp<int64_t>(index, 0, size - 1) * stride;
            taps.weight[side][i] = inside ? weight[side] : 0.0F;
        }
    }
}

struct TileTaps {
    std::array<std::array<int64_t, 8>, kTile> offset;  // of the first channel, channels last
    std::array<std::array<float, 8>, kTile> weight;
};

void combine_taps(const AxisTaps& x, const AxisTaps& y, const AxisTaps& z, int points,
                  TileTaps& taps) {
    for (int i = 0; i < points; ++i) {
        for (size_t corner = 0; corner < 8; ++corner) {
            const size_t a = corner & 1U;
            const size_t b = corner >> 1U & 1U;
            const size_t c = corner >> 2U;
            taps.offset[i][corner] = x.index[a][i] + y.index[b][i] + z.index[c][i];
            taps.weight[i][corner] = x.weight[a][i] * y.weight[b][i] * z.weight[c][i];
        }
    }
}

// [channels, voxels] -> [voxels, channels] for voxels [begin, end).
void to_channels_last(const float* planes, int64_t channels, int64_t voxels, int64_t begin,
                      int64_t end, float* rows) {
    for (int64_t v = begin; v < end; v += kTile) {
        const int64_t last = std::min<int64_t>(v + kTile, end);
        for (int64_t c = 0; c < channels; ++c) {
            const float* plane = planes + c * voxels;
            for (int64_t i = v; i < last; ++i) rows[i * channels + c] = plane[i];
        }
    }
}

// Weighted sum of the eight corners for `count` channels of each point, into planes.
void blend_tile(const float* rows, const TileTaps& taps, int points, int count, float* target,
                int64_t plane_stride) {
    alignas(64) std::array<float, kTile * kChannels> tile;
    for (int i = 0; i < points; ++i) {
        std::array<const float*, 8> corner;
        for (size_t k = 0; k < 8; ++k) corner[k] = rows + taps.offset[i][k];
        const auto& w = taps.weight[i];
        float* row = tile.data() + i * kChannels;
        for (int c = 0; c < count; ++c) {
            row[c] = ((w[0] * corner[0][c] + w[1] * corner[1][c]) +
                      (w[2] * corner[2][c] + w[3] * corner[3][c])) +
                     ((w[4] * corner[4][c] + w[5] * corner[5][c]) +
                      (w[6] * corner[6][c] + w[7] * corner[7][c]));
        }
    }
    for (int c = 0; c < count; ++c) {
        for (int i = 0; i < points; ++i) target[c * plane_stride + i] = tile[i * kChannels + c];
    }
}

void sample_tile(const GridSampleRule& rule, const GridSampleGeometry& geometry, const float* rows,
                 const float* grid, int64_t first_point, int points, float* target) {
    const int64_t channels = geometry.channels;
    const auto& in = geometry.in;
    const float* point = grid + 3 * first_point;
    AxisTaps x;
    AxisTaps y;
    AxisTaps z;
    find_taps(rule, point, points, in.width, channels, x);
    find_taps(rule, point + 1, points, in.height, in.width * channels, y);
    find_taps(rule, point + 2, points, in.depth, in.height * in.width * channels, z);
    TileTaps taps;
    combine_taps(x, y, z, points, taps);
    const int64_t plane_stride = geometry.out.count();
    for (int64_t c = 0; c < channels; c += kChannels) {
        const auto count = static_cast<int>(std::min<int64_t>(kChannels, channels - c));
        blend_tile(rows + c, taps, points, count, target + c * plane_stride + first_point,
                   plane_stride);
    }
}

// Calls work(begin, end) for pieces of [0, points) that start at multiples of kTile.
template <typename Work>
void for_tiles(int64_t points, const Work& work) {
    const int64_t tiles = (points + kTile - 1) / kTile;
    tbb::parallel_for(tbb::blocked_range<int64_t>(0, tiles, kGrain), [&](const auto& range) {
        work(range.begin() * kTile, std::min(range.end() * kTile, points));
    });
}

}  // namespace

void grid_sample_3d(const GridSampleRule& rule, const GridSampleGeometry& geometry,
                    const float* volume, const float* grid, float* target,
                    std::vector<float>& scratch) {
    const int64_t voxels = geometry.in.count();
    const int64_t points = geometry.out.count();
    const int64_t channels = geometry.channels;
    // All channels of a voxel side by side: a corner is then one contiguous read.
    scratch.resize(static_cast<size_t>(
        std::max<int64_t>(static_cast<int64_t>(scratch.size()), channels * voxels)));
    for (int64_t n = 0; n < geometry.batch; ++n) {
        const float* planes = volume + n * channels * voxels;
        for_tiles(voxels, [&](int64_t begin, int64_t end) {
            to_channels_last(planes, channels, voxels, begin, end, scratch.data());
        });
        const float* grid_n = grid + n * points * 3;
        float* target_n = target + n * channels * points;
        for_tiles(points, [&](int64_t begin, int64_t end) {
            for (int64_t p = begin; p < end; p += kTile) {
                const auto count = static_cast<int>(std::min<int64_t>(kTile, end - p));
                sample_tile(rule, geometry, scratch.data(), grid_n, p, count, target_n);
            }
        });
    }
}

}  // namespace newscaster::device
