#include "registration/crop_sampler.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace newscaster::registration {

namespace {

using Rgb = std::array<double, 3>;

constexpr double kWhite = 255.0;

void add_pixel(const RgbImage& picture, int x, int y, double weight, Rgb& sum) {
    if (x < 0 || y < 0 || x >= picture.width || y >= picture.height) return;
    const size_t at =
        3 * (static_cast<size_t>(y) * static_cast<size_t>(picture.width) + static_cast<size_t>(x));
    for (size_t c = 0; c < sum.size(); ++c) sum.at(c) += weight * picture.pixels[at + c];
}

// Bilinear, (x, y) continuous with pixel centres at +0.5; some of the four pixels may be beyond the
// picture.
void add_sample_at_edge(const RgbImage& picture, double x, double y, Rgb& sum) {
    const double left = std::floor(x - 0.5);
    const double top = std::floor(y - 0.5);
    if (left < -1.0 || top < -1.0 || left >= picture.width || top >= picture.height) return;
    const double fx = x - 0.5 - left;
    const double fy = y - 0.5 - top;
    const int column = static_cast<int>(left);
    const int row = static_cast<int>(top);
    add_pixel(picture, column, row, (1.0 - fx) * (1.0 - fy), sum);
    add_pixel(picture, column + 1, row, fx * (1.0 - fy), sum);
    add_pixel(picture, column, row + 1, (1.0 - fx) * fy, sum);
    add_pixel(picture, column + 1, row + 1, fx * fy, sum);
}

// The same anywhere: most samples have all four pixels.
void add_sample(const RgbImage& picture, double x, double y, Rgb& sum) {
    if (!(x >= 0.5 && y >= 0.5 && x < picture.width - 0.5 && y < picture.height - 0.5)) {
        add_sample_at_edge(picture, x, y, sum);
        return;
    }
    const auto column = static_cast<size_t>(x - 0.5);
    const auto row = static_cast<size_t>(y - 0.5);
    const double fx = x - 0.5 - static_cast<double>(column);
    const double fy = y - 0.5 - static_cast<double>(row);
    const size_t stride = 3 * static_cast<size_t>(picture.width);
    const uint8_t* top = picture.pixels.data() + row * stride + 3 * column;
    const uint8_t* bottom = top + stride;
    for (size_t c = 0; c < 3; ++c) {
        const double above = top[c] + fx * (top[c + 3] - top[c]);
        const double below = bottom[c] + fx * (bottom[c + 3] - bottom[c]);
        sum[c] += above + fy * (below - above);
    }
}

uint8_t to_byte(double value) {
    return static_cast<uint8_t>(std::lround(std::clamp(value, 0.0, 255.0)));
}

// Share of pixel `index` in output cell `cell` of `step` pixels: the weights of an area average.
double overlap(int64_t index, int64_t cell, double step) {
    const double begin = std::max(static_cast<double>(index), static_cast<double>(cell) * step);
    const double end =
        std::min(static_cast<double>(index + 1), static_cast<double>(cell + 1) * step);
    return std::max(0.0, end - begin);
}

struct Cell {
    int64_t first = 0;
    int64_t last = 0;  // past the end
    double step = 1.0;
};

Cell cell_of(int64_t index, int64_t cells, int extent) {
    const double step = static_cast<double>(extent) / static_cast<double>(cells);
    const auto first = static_cast<int64_t>(std::floor(static_cast<double>(index) * step));
    const auto last = static_cast<int64_t>(std::ceil(static_cast<double>(index + 1) * step));
    return {first, std::min<int64_t>(last, extent), step};
}

Rgb area_average(const RgbImage& picture, const Cell& rows, int64_t row, const Cell& columns,
                 int64_t column) {
    Rgb sum{};
    for (int64_t y = rows.first; y < rows.last; ++y) {
        const double height = overlap(y, row, rows.step);
        for (int64_t x = columns.first; x < columns.last; ++x) {
            const double weight = height * overlap(x, column, columns.step);
            add_pixel(picture, static_cast<int>(x), static_cast<int>(y), weight, sum);
        }
    }
    for (double& value : sum) value /= rows.step * columns.step;
    return sum;
}

}  // namespace

RgbImage cut_crop(const RgbImage& picture, const Affine& crop_to_picture, int crop_size) {
    const auto& m = crop_to_picture;
    const double scale = std::sqrt(std::abs(m[0] * m[4] - m[1] * m[3]));
    const int samples = std::max(1, static_cast<int>(std::ceil(scale - 1e-9)));
    const double share = 1.0 / (static_cast<double>(samples) * samples);
    RgbImage crop{crop_size, crop_size, {}};
    crop.pixels.resize(static_cast<size_t>(crop_size) * static_cast<size_t>(crop_size) * 3);
    uint8_t* target = crop.pixels.data();
    for (int row = 0; row < crop_size; ++row) {
        for (int column = 0; column < crop_size; ++column) {
            Rgb sum{};
            for (int i = 0; i < samples; ++i) {
                for (int k = 0; k < samples; ++k) {
                    const double u = column + (k + 0.5) / samples;
                    const double v = row + (i + 0.5) / samples;
                    add_sample(picture, m[0] * u + m[1] * v + m[2], m[3] * u + m[4] * v + m[5],
                               sum);
                }
            }
            for (const double value : sum) *target++ = to_byte(value * share);
        }
    }
    return crop;
}

Tensor to_network_image(const RgbImage& picture, int64_t height, int64_t width) {
    Tensor image(DType::f32, {1, 3, height, width});
    const auto values = image.as<float>();
    for (int64_t row = 0; row < height; ++row) {
        const Cell rows = cell_of(row, height, picture.height);
        for (int64_t column = 0; column < width; ++column) {
            const Cell columns = cell_of(column, width, picture.width);
            const Rgb mean = area_average(picture, rows, row, columns, column);
            for (size_t c = 0; c < mean.size(); ++c) {
                const int64_t plane = static_cast<int64_t>(c) * height * width;
                values[static_cast<size_t>(plane + row * width + column)] =
                    static_cast<float>(mean.at(c) / kWhite);
            }
        }
    }
    return image;
}

Tensor to_planes(const RgbImage& picture) {
    Tensor planes(DType::u8, {1, 3, picture.height, picture.width});
    const auto values = planes.as<uint8_t>();
    const size_t plane = values.size() / 3;
    for (size_t i = 0; i < plane; ++i) {
        for (size_t c = 0; c < 3; ++c) values[c * plane + i] = picture.pixels[3 * i + c];
    }
    return planes;
}

}  // namespace newscaster::registration
