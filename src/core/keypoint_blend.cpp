#include "core/keypoint_blend.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace newscaster {

namespace {

// Shares that stray from their priors by 1 cost as much as a keypoint distance of 0.0003 crop half
// widths, a tenth of a pixel: enough to settle what the keypoints leave open.
constexpr double kPriorStrength = 1e-7;
constexpr double kShareSigma = 0.12;  // crop half widths: about a third of a mouth
constexpr double kFarWeight = 1e-6;   // far from every keypoint all of them count alike

size_t pairs_of(size_t keys) {
    return keys * (keys + 1) / 2;
}

// Solves A x = b for a symmetric positive definite A [n, n] by Cholesky; A is overwritten by L.
void factorise(std::vector<double>& a, size_t n) {
    for (size_t j = 0; j < n; ++j) {
        for (size_t i = j; i < n; ++i) {
            double sum = a[i * n + j];
            for (size_t k = 0; k < j; ++k) sum -= a[i * n + k] * a[j * n + k];
            a[i * n + j] = i == j ? std::sqrt(sum) : sum / a[j * n + j];
        }
    }
}

std::vector<double> solve(const std::vector<double>& l, std::vector<double> b) {
    const size_t n = b.size();
    for (size_t i = 0; i < n; ++i) {
        for (size_t k = 0; k < i; ++k) b[i] -= l[i * n + k] * b[k];
        b[i] /= l[i * n + i];
    }
    for (size_t i = n; i-- > 0;) {
        for (size_t k = i + 1; k < n; ++k) b[i] -= l[k * n + i] * b[k];
        b[i] /= l[i * n + i];
    }
    return b;
}

}  // namespace

BlendFit::BlendFit(std::span<const float> target, const std::vector<BlendKey>& keys)
    : keypoints_(target.size() / 3) {
    std::vector<double> offsets(keys.size() * target.size());
    for (size_t i = 0; i < keys.size(); ++i) {
        priors_.push_back(keys[i].prior);
        for (size_t v = 0; v < target.size(); ++v) {
            offsets[i * target.size() + v] =
                static_cast<double>(keys[i].keypoints[v]) - static_cast<double>(target[v]);
        }
    }
    products_.reserve(pairs_of(keys.size()) * keypoints_);
    for (size_t i = 0; i < keys.size(); ++i) {
        for (size_t j = 0; j <= i; ++j) {
            for (size_t k = 0; k < keypoints_; ++k) {
                const double* a = offsets.data() + i * target.size() + 3 * k;
                const double* b = offsets.data() + j * target.size() + 3 * k;
                products_.push_back(a[0] * b[0] + a[1] * b[1] + a[2] * b[2]);
            }
        }
    }
}

std::vector<double> BlendFit::gram(std::span<const double> weights) const {
    const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
    std::vector<double> result(keys() * keys());
    const double* products = products_.data();
    for (size_t i = 0; i < keys(); ++i) {
        for (size_t j = 0; j <= i; ++j, products += keypoints_) {
            double sum = 0.0;
            for (size_t k = 0; k < keypoints_; ++k) sum += weights[k] * products[k];
            result[i * keys() + j] = result[j * keys() + i] = sum / total;
        }
    }
    return result;
}

// With w = p + u: (G + lambda) u = -G p - mu, and sum u = 0 gives mu.
std::vector<double> BlendFit::shares(std::span<const double> weights) const {
    const size_t n = keys();
    std::vector<double> system = gram(weights);
    std::vector<double> right(n);
    for (size_t i = 0; i < n; ++i) {
        for (size_t j = 0; j < n; ++j) right[i] -= system[i * n + j] * priors_[j];
    }
    for (size_t i = 0; i < n; ++i) system[i * n + i] += kPriorStrength;
    factorise(system, n);
    const auto free = solve(system, std::move(right));
    const auto ones = solve(system, std::vector<double>(n, 1.0));
    const double mu = std::accumulate(free.begin(), free.end(), 0.0) /
                      std::accumulate(ones.begin(), ones.end(), 0.0);
    std::vector<double> result(n);
    for (size_t i = 0; i < n; ++i) result[i] = priors_[i] + free[i] - mu * ones[i];
    return result;
}

double BlendFit::residual(std::span<const double> weights, std::span<const double> shares) const {
    const auto g = gram(weights);
    double sum = 0.0;
    for (size_t i = 0; i < keys(); ++i) {
        for (size_t j = 0; j < keys(); ++j) sum += shares[i] * shares[j] * g[i * keys() + j];
    }
    return std::sqrt(std::max(sum, 0.0));
}

double BlendFit::spread(std::span<const double> weights, std::span<const double> shares) const {
    const auto g = gram(weights);
    double sum = 0.0;
    for (size_t i = 0; i < keys(); ++i) sum += std::abs(shares[i]) * g[i * keys() + i];
    return std::sqrt(sum);
}

std::vector<double> keypoint_bells(std::span<const float> keypoints, int64_t grid_size,
                                   double sigma) {
    const size_t count = keypoints.size() / 3;
    const auto size = static_cast<size_t>(grid_size);
    std::vector<double> along(2 * size * count);  // [axis][cell][K]
    for (size_t axis = 0; axis < 2; ++axis) {
        for (size_t cell = 0; cell < size; ++cell) {
            const double centre =
                (2.0 * static_cast<double>(cell) + 1.0) / static_cast<double>(grid_size) - 1.0;
            for (size_t k = 0; k < count; ++k) {
                const double d = (centre - static_cast<double>(keypoints[3 * k + axis])) / sigma;
                along[(axis * size + cell) * count + k] = std::exp(-0.5 * d * d);
            }
        }
    }
    std::vector<double> bells(size * size * count);
    for (size_t y = 0; y < size; ++y) {
        for (size_t x = 0; x < size; ++x) {
            const double* column = along.data() + x * count;
            const double* row = along.data() + (size + y) * count;
            double* out = bells.data() + (y * size + x) * count;
            for (size_t k = 0; k < count; ++k) out[k] = column[k] * row[k];
        }
    }
    return bells;
}

std::vector<float> upsample_grid(std::span<const float> grid, int64_t grid_size, int64_t height,
                                 int64_t width) {
    struct Tap {
        size_t low = 0;
        size_t high = 0;
        float share = 0.0F;
    };
    const auto taps = [grid_size](int64_t cells) {
        std::vector<Tap> result(static_cast<size_t>(cells));
        for (size_t i = 0; i < result.size(); ++i) {
            const double at =
                std::clamp((static_cast<double>(i) + 0.5) * static_cast<double>(grid_size) /
                                   static_cast<double>(cells) -
                               0.5,
                           0.0, static_cast<double>(grid_size - 1));
            result[i].low = static_cast<size_t>(at);
            result[i].high = std::min(result[i].low + 1, static_cast<size_t>(grid_size - 1));
            result[i].share = static_cast<float>(at - std::floor(at));
        }
        return result;
    };
    const auto rows = taps(height);
    const auto columns = taps(width);
    const auto size = static_cast<size_t>(grid_size);
    std::vector<float> result(rows.size() * columns.size());
    std::vector<float> line(size);
    float* out = result.data();
    for (const Tap& y : rows) {
        for (size_t x = 0; x < size; ++x) {
            line[x] = grid[y.low * size + x] * (1.0F - y.share) + grid[y.high * size + x] * y.share;
        }
        for (const Tap& x : columns) {
            *out++ = line[x.low] * (1.0F - x.share) + line[x.high] * x.share;
        }
    }
    return result;
}

ShareMaps::ShareMaps(const BlendFit& fit, std::span<const float> target)
    : overall_(fit.shares(std::vector<double>(fit.keypoints(), 1.0))),
      grids_(fit.keys(), std::vector<float>(kGrid * kGrid)) {
    auto bells = keypoint_bells(target, kGrid, kShareSigma);
    const size_t count = fit.keypoints();
    for (size_t cell = 0; cell < grids_.front().size(); ++cell) {
        const std::span<double> weights(bells.data() + cell * count, count);
        for (double& weight : weights) weight += kFarWeight;
        const auto shares = fit.shares(weights);
        for (size_t i = 0; i < shares.size(); ++i) grids_[i][cell] = static_cast<float>(shares[i]);
    }
}

std::vector<float> ShareMaps::map(size_t key, int64_t height, int64_t width) const {
    return upsample_grid(grids_[key], kGrid, height, width);
}

}  // namespace newscaster
