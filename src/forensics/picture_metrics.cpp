#include "forensics/picture_metrics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace newscaster::forensics {

namespace {

constexpr int kReach = 5;
constexpr size_t kTaps = 2 * kReach + 1;
constexpr double kSigma = 1.5;
constexpr float kC1 = (0.01F * 255.0F) * (0.01F * 255.0F);
constexpr float kC2 = (0.03F * 255.0F) * (0.03F * 255.0F);

std::array<float, kTaps> gaussian() {
    std::array<double, kTaps> taps{};
    double sum = 0.0;
    for (size_t i = 0; i < kTaps; ++i) {
        const double d = static_cast<double>(i) - kReach;
        taps.at(i) = std::exp(-0.5 * d * d / (kSigma * kSigma));
        sum += taps.at(i);
    }
    std::array<float, kTaps> result{};
    for (size_t i = 0; i < kTaps; ++i) result.at(i) = static_cast<float>(taps.at(i) / sum);
    return result;
}

// Rows of the five moments (a, b, a^2, b^2, a b), filtered along x; a ring of as many rows as the
// window is high. Planes of floats, so that the loops over x become vector code.
class MomentRows {
  public:
    explicit MomentRows(size_t width) : width_(width), line_(5 * (width + kTaps - 1)) {
        for (auto& row : rows_) row.resize(5 * width);
    }

    void add(const uint8_t* a, const uint8_t* b) {
        const size_t wide = width_ + kTaps - 1;
        float* moment = line_.data();
        for (size_t x = 0; x < wide; ++x) {
            // Centred, so that squares keep their digits in floats.
            const float p = static_cast<float>(a[x]) - 128.0F;
            const float q = static_cast<float>(b[x]) - 128.0F;
            moment[x] = p;
            moment[wide + x] = q;
            moment[2 * wide + x] = p * p;
            moment[3 * wide + x] = q * q;
            moment[4 * wide + x] = p * q;
        }
        auto& row = rows_.at(next_ % kTaps);
        std::ranges::fill(row, 0.0F);
        for (size_t m = 0; m < 5; ++m) {
            const float* from = moment + m * wide;
            float* to = row.data() + m * width_;
            for (size_t i = 0; i < kTaps; ++i) {
                const float tap = taps_.at(i);
                for (size_t x = 0; x < width_; ++x) to[x] += tap * from[x + i];
            }
        }
        ++next_;
    }

    [[nodiscard]] bool full() const { return next_ >= kTaps; }

    // Sum of the similarity over the windows of the last rows.
    [[nodiscard]] double similarity() {
        sums_.assign(5 * width_, 0.0F);
        for (size_t i = 0; i < kTaps; ++i) {
            const auto& row = rows_.at((next_ + i) % kTaps);
            const float tap = taps_.at(i);
            for (size_t x = 0; x < sums_.size(); ++x) sums_[x] += tap * row[x];
        }
        double sum = 0.0;
        for (size_t x = 0; x < width_; ++x) {
            const float a = sums_[x];
            const float b = sums_[width_ + x];
            const float aa = sums_[2 * width_ + x] - a * a;
            const float bb = sums_[3 * width_ + x] - b * b;
            const float ab = sums_[4 * width_ + x] - a * b;
            const float ma = a + 128.0F;
            const float mb = b + 128.0F;
            sum += static_cast<double>((2.0F * ma * mb + kC1) * (2.0F * ab + kC2) /
                                       ((ma * ma + mb * mb + kC1) * (aa + bb + kC2)));
        }
        return sum;
    }

  private:
    size_t width_;
    std::array<float, kTaps> taps_ = gaussian();
    std::vector<float> line_;
    std::array<std::vector<float>, kTaps> rows_;
    std::vector<float> sums_;
    size_t next_ = 0;
};

}  // namespace

std::optional<double> psnr_db(const Plane& a, const Plane& b, const Box& part, double area) {
    int64_t sum = 0;
    for (int y = part.y0; y < part.y1; ++y) {
        const uint8_t* p = a.row(y);
        const uint8_t* q = b.row(y);
        int64_t line = 0;
        for (int x = part.x0; x < part.x1; ++x) {
            const int d = int{p[x]} - int{q[x]};
            line += d * d;
        }
        sum += line;
    }
    if (sum == 0) return std::nullopt;
    return 10.0 * std::log10(255.0 * 255.0 * area / static_cast<double>(sum));
}

double ssim(const Plane& a, const Plane& b, const Box& part, double area) {
    const int width = part.width() - 2 * kReach;
    const int height = part.height() - 2 * kReach;
    if (width <= 0 || height <= 0) return 1.0;
    MomentRows rows(static_cast<size_t>(width));
    double sum = 0.0;
    for (int y = part.y0; y < part.y1; ++y) {
        rows.add(a.row(y) + part.x0, b.row(y) + part.x0);
        if (rows.full()) sum += rows.similarity();
    }
    const double windows = static_cast<double>(width) * height;
    return (sum + (area - windows)) / area;
}

}  // namespace newscaster::forensics
