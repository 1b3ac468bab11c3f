// How much of which keyframes makes an in-between frame. The frame's own keypoints are known, so
// the shares are those that reproduce them best, place by place, instead of plain time:
//
//   minimise  sum_k g_k |sum_i w_i x_i,k - x_k|^2 + lambda sum_i (w_i - p_i)^2,  sum_i w_i = 1
//
// over the shares w of the keyframes i, with x the keypoints k, g their weights at the place, and p
// the shares that win where the keypoints leave the choice open. Shares may be negative or above 1.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace newscaster {

struct BlendKey {
    std::span<const float> keypoints;  // [K*3], crop = [-1, 1]
    double prior = 0.0;                // the priors of all keys add up to 1
};

// One frame against some keyframes. Immutable. Deterministic: the same values on every CPU.
class BlendFit {
  public:
    // Keypoint counts must be equal; at least one key.
    BlendFit(std::span<const float> target, const std::vector<BlendKey>& keys);

    [[nodiscard]] size_t keys() const { return priors_.size(); }
    [[nodiscard]] size_t keypoints() const { return keypoints_; }

    // Shares of the keys where keypoint k counts weights[k] >= 0; not all are 0.
    [[nodiscard]] std::vector<double> shares(std::span<const double> weights) const;

    // Weighted RMS distance that these shares leave between the blended and the true keypoints.
    [[nodiscard]] double residual(std::span<const double> weights,
                                  std::span<const double> shares) const;

    // Weighted RMS distance of the keys from the frame, each as much as its share: how far the
    // blend leans on linearity.
    [[nodiscard]] double spread(std::span<const double> weights,
                                std::span<const double> shares) const;

  private:
    // Mean over keypoints of offset_i . offset_j.
    [[nodiscard]] std::vector<double> gram(std::span<const double> weights) const;

    size_t keypoints_;
    std::vector<double> priors_;
    std::vector<double> products_;  // [pairs i <= j][K]: offset_i,k . offset_j,k
};

// Shares of every key on a grid over the crop, where a place listens to the keypoints near it, and
// for values without a place.
class ShareMaps {
  public:
    static constexpr int64_t kGrid = 16;

    // target: keypoints [K*3] of the frame that `fit` was made for.
    ShareMaps(const BlendFit& fit, std::span<const float> target);

    [[nodiscard]] size_t keys() const { return overall_.size(); }
    [[nodiscard]] double overall(size_t key) const { return overall_[key]; }

    // The shares of one key at the grid's cells, [kGrid, kGrid]; upsample_grid() interpolates them.
    [[nodiscard]] std::span<const float> grid(size_t key) const { return grids_[key]; }

    // The shares of one key, interpolated to [height, width] cells of the crop.
    [[nodiscard]] std::vector<float> map(size_t key, int64_t height, int64_t width) const;

  private:
    std::vector<double> overall_;
    std::vector<std::vector<float>> grids_;
};

// Bilinear values of a square grid over the crop at the centres of [height, width] cells; beyond
// the outermost grid centres the value stays.
[[nodiscard]] std::vector<float> upsample_grid(std::span<const float> grid, int64_t grid_size,
                                               int64_t height, int64_t width);

// Bell-shaped weight of every keypoint at the centre of every cell of a grid_size x grid_size grid
// over the crop: [cells][K], exp(-distance^2 / (2 sigma^2)) in the picture plane.
[[nodiscard]] std::vector<double> keypoint_bells(std::span<const float> keypoints,
                                                 int64_t grid_size, double sigma);

}  // namespace newscaster
