#include "picture_metrics.h"

#include <array>
#include <cmath>

namespace newscaster::bench {

namespace {

constexpr int kReach = 5;
constexpr int kTaps = 2 * kReach + 1;
constexpr double kSigma = 1.5;
constexpr double kC1 = (0.01 * 255.0) * (0.01 * 255.0);
constexpr double kC2 = (0.03 * 255.0) * (0.03 * 255.0);

std::array<double, kTaps> gaussian() {
    std::array<double, kTaps> taps{};
    double sum = 0.0;
    for (size_t i = 0; i < taps.size(); ++i) {
        const double d = static_cast<double>(i) - kReach;
        taps.at(i) = std::exp(-0.5 * d * d / (kSigma * kSigma));
        sum += taps.at(i);
    }
    for (double& tap : taps) tap /= sum;
    return taps;
}

// Means of a, b, a^2, b^2 and a*b.
using Moments = std::array<double, 5>;

void add(Moments& to, double weight, const Moments& from) {
    for (size_t i = 0; i < to.size(); ++i) to.at(i) += weight * from.at(i);
}

double similarity(const Moments& m) {
    const double aa = m[2] - m[0] * m[0];
    const double bb = m[3] - m[1] * m[1];
    const double ab = m[4] - m[0] * m[1];
    return (2.0 * m[0] * m[1] + kC1) * (2.0 * ab + kC2) /
           ((m[0] * m[0] + m[1] * m[1] + kC1) * (aa + bb + kC2));
}

}  // namespace

std::optional<double> psnr_db(const Luma& a, const Luma& b, const Box& part, double area) {
    int64_t sum = 0;
    for (int y = part.y0; y < part.y1; ++y) {
        for (int x = part.x0; x < part.x1; ++x) {
            const int d = int{a.at(x, y)} - int{b.at(x, y)};
            sum += d * d;
        }
    }
    if (sum == 0) return std::nullopt;
    return 10.0 * std::log10(255.0 * 255.0 * area / static_cast<double>(sum));
}

double ssim(const Luma& a, const Luma& b, const Box& part, double area) {
    const auto taps = gaussian();
    const int width = part.width() - 2 * kReach;
    const int height = part.height() - 2 * kReach;
    if (width <= 0 || height <= 0) return 1.0;
    // Rows filtered along x; the columns are filtered as soon as eleven rows are there.
    std::vector<std::vector<Moments>> rows(static_cast<size_t>(part.height()));
    double sum = 0.0;
    for (int y = part.y0; y < part.y1; ++y) {
        auto& row = rows[static_cast<size_t>(y - part.y0)];
        row.resize(static_cast<size_t>(width));
        for (int x = 0; x < width; ++x) {
            for (int i = 0; i < kTaps; ++i) {
                const double p = a.at(part.x0 + x + i, y);
                const double q = b.at(part.x0 + x + i, y);
                add(row[static_cast<size_t>(x)], taps.at(static_cast<size_t>(i)),
                    {p, q, p * p, q * q, p * q});
            }
        }
        const int top = y - part.y0 - 2 * kReach;
        if (top < 0) continue;
        for (size_t x = 0; x < static_cast<size_t>(width); ++x) {
            Moments window{};
            for (size_t i = 0; i < kTaps; ++i) {
                add(window, taps.at(i), rows[static_cast<size_t>(top) + i][x]);
            }
            sum += similarity(window);
        }
        rows[static_cast<size_t>(top)].clear();
    }
    const double windows = static_cast<double>(width) * height;
    return (sum + (area - windows)) / area;
}

}  // namespace newscaster::bench
