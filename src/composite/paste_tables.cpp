#include "composite/paste_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "newscaster/error.h"

namespace newscaster::composite {
namespace {

constexpr int kRoiAlign = 16;

int32_t pair_of(int32_t low, int32_t high) {
    return static_cast<int32_t>((static_cast<uint32_t>(low) & 0xffffU) |
                                (static_cast<uint32_t>(high) << 16U));
}

int round_up(int value, int step) {
    return (value + step - 1) / step * step;
}

Affine invert(const Affine& m) {
    const double det = m[0] * m[4] - m[1] * m[3];
    if (!std::all_of(m.begin(), m.end(), [](double x) { return std::isfinite(x); }) ||
        !(std::abs(det) > 1e-9)) {
        throw Error(ErrorCode::bad_pack,
                    fmt::format("crop transform: found [{:g} {:g} {:g}; {:g} {:g} {:g}], wanted an "
                                "invertible affine map",
                                m[0], m[1], m[2], m[3], m[4], m[5]));
    }
    const double a = m[4] / det, b = -m[1] / det, c = -m[3] / det, d = m[0] / det;
    return {a, b, -(a * m[2] + b * m[5]), c, d, -(c * m[2] + d * m[5])};
}

// Sampling coordinate of a pixel: index of the first of two taps and the second one's share.
struct Tap {
    int index = 0;
    double share = 0.0;
};

Tap tap_at(double position, int crop_size) {
    const double s = std::clamp(position - 0.5, 0.0, static_cast<double>(crop_size - 1));
    const int index = std::min(static_cast<int>(s), crop_size - 2);
    return {index, s - index};
}

// Weights of the taps (upper left, upper right, lower left, lower right); they sum to alpha.
std::array<int32_t, 4> bilinear_weights(int32_t alpha, double fx, double fy) {
    const auto part = [&](double share) { return static_cast<int32_t>(std::lrint(alpha * share)); };
    std::array<int32_t, 4> w = {0, part(fx * (1.0 - fy)), part((1.0 - fx) * fy), part(fx * fy)};
    w[0] = alpha - w[1] - w[2] - w[3];
    if (w[0] < 0) {  // rounding took more than there is
        *std::max_element(w.begin() + 1, w.end()) += w[0];
        w[0] = 0;
    }
    return w;
}

// Builds the tables of one plan; lives only inside make_paste_tables.
class TableBuilder {
  public:
    TableBuilder(const RgbImage& canvas, const Affine& crop_to_canvas, int crop_size,
                 const SoftMask& mask, const Kernels& kernels)
        : canvas_(canvas),
          inverse_(invert(crop_to_canvas)),
          crop_size_(crop_size),
          mask_(mask),
          kernels_(kernels) {
        find_roi(crop_to_canvas);
        t_.columns = round_up(t_.roi.width(), kernels_.group);
        // Less than a millionth of a crop pixel over the whole canvas counts as no rotation.
        t_.separable = std::abs(inverse_[1]) * canvas.height < 1e-6 &&
                       std::abs(inverse_[3]) * canvas.width < 1e-6;
    }

    PasteTables build() {
        fill_alpha();
        if (t_.separable) fill_axes();
        t_.crop_row_begin = crop_size_;
        for (int row = 0; row < t_.roi.height(); row += 2) {
            t_.spans.push_back(span_of_pair(row));
            add_row(row, t_.spans.back());
            add_row(row + 1, t_.spans.back());
        }
        return std::move(t_);
    }

    RoiTables dense(bool whole_canvas) {
        if (whole_canvas) {
            t_.roi = {0, 0, canvas_.width, canvas_.height};
            t_.columns = round_up(canvas_.width, kernels_.group);
        }
        fill_alpha();
        if (t_.separable) fill_axes();
        const int width = t_.roi.width();
        RoiTables dense;
        dense.width = width;
        dense.height = t_.roi.height();
        dense.crop_size = crop_size_;
        dense.separable = t_.separable;
        if (t_.separable) {
            for (int column = 0; column < width; ++column) {
                const auto i = static_cast<size_t>(column);
                dense.column_tap.push_back(t_.column_offset[i] / 4);
                dense.column_weights.push_back(t_.column_weights[i]);
            }
        }
        for (int row = 0; row < dense.height; ++row) add_dense_row(row, dense);
        return dense;
    }

  private:
    void add_dense_row(int row, RoiTables& dense) const {
        const Tap vertical = row_tap(row);
        if (dense.separable) dense.row_tap.push_back(vertical.index);
        for (int column = 0; column < dense.width; ++column) {
            const int32_t alpha = alpha_[cell(row, column)];
            const uint8_t* rgb = &canvas_.pixels[3 * canvas_pixel(row, column)];
            dense.background.push_back(rgb[0] | uint32_t{rgb[1]} << 8U | uint32_t{rgb[2]} << 16U);
            if (dense.separable) {
                dense.mix_weights.push_back(mix_weights(vertical, alpha));
                continue;
            }
            const Sample sample = sample_at(row, column, alpha);
            dense.tap.push_back(sample.down * crop_size_ + sample.across);
            dense.upper.push_back(pair_of(sample.weights[0], sample.weights[1]));
            dense.lower.push_back(pair_of(sample.weights[2], sample.weights[3]));
        }
    }

    // Four-tap sampling of one pixel; all zero where nothing of the crop is seen.
    struct Sample {
        int across = 0;
        int down = 0;
        std::array<int32_t, 4> weights{};
    };
    [[nodiscard]] Sample sample_at(int row, int column, int32_t alpha) const {
        if (alpha == 0) return {};
        const int x = t_.roi.x0 + column;
        const int y = t_.roi.y0 + row;
        const Tap across = tap_at(u_at(x, y), crop_size_);
        const Tap down = tap_at(v_at(x, y), crop_size_);
        return {across.index, down.index, bilinear_weights(alpha, across.share, down.share)};
    }

    [[nodiscard]] Tap row_tap(int row) const {
        return tap_at(v_at(t_.roi.x0, t_.roi.y0 + row), crop_size_);
    }
    static int32_t mix_weights(const Tap& vertical, int32_t alpha) {
        const auto second = static_cast<int32_t>(std::lrint(vertical.share * alpha));
        return pair_of(alpha - second, second);
    }

    [[nodiscard]] size_t canvas_pixel(int row, int column) const {
        return static_cast<size_t>(t_.roi.y0 + row) * static_cast<size_t>(canvas_.width) +
               static_cast<size_t>(t_.roi.x0 + column);
    }

    [[nodiscard]] double u_at(int x, int y) const {
        return inverse_[0] * (x + 0.5) + inverse_[1] * (y + 0.5) + inverse_[2];
    }
    [[nodiscard]] double v_at(int x, int y) const {
        return inverse_[3] * (x + 0.5) + inverse_[4] * (y + 0.5) + inverse_[5];
    }
    [[nodiscard]] double weight_at(int x, int y) const {
        return mask_weight(mask_, crop_size_, u_at(x, y), v_at(x, y));
    }

    void find_roi(const Affine& m) {
        const double far = crop_size_;
        const std::array<double, 4> xs = {m[2], m[2] + m[0] * far, m[2] + m[1] * far,
                                          m[2] + (m[0] + m[1]) * far};
        const std::array<double, 4> ys = {m[5], m[5] + m[3] * far, m[5] + m[4] * far,
                                          m[5] + (m[3] + m[4]) * far};
        const auto clip = [](double value, int high) {
            return static_cast<int>(std::clamp(value, 0.0, static_cast<double>(high)));
        };
        const int x_begin =
            clip(std::floor(*std::min_element(xs.begin(), xs.end())), canvas_.width);
        const int x_end = clip(std::ceil(*std::max_element(xs.begin(), xs.end())), canvas_.width);
        const int y_begin =
            clip(std::floor(*std::min_element(ys.begin(), ys.end())), canvas_.height);
        const int y_end = clip(std::ceil(*std::max_element(ys.begin(), ys.end())), canvas_.height);
        Box box{canvas_.width, canvas_.height, 0, 0};
        for (int y = y_begin; y < y_end; ++y) {
            for (int x = x_begin; x < x_end; ++x) {
                if (!(weight_at(x, y) > 0.0)) continue;
                box = {std::min(box.x0, x), std::min(box.y0, y), std::max(box.x1, x + 1),
                       std::max(box.y1, y + 1)};
            }
        }
        if (box.x0 >= box.x1) {
            throw Error(ErrorCode::bad_pack,
                        fmt::format("crop transform: found no visible pixel on the {}x{} canvas "
                                    "(offset {:g}, {:g}), wanted the crop on the canvas",
                                    canvas_.width, canvas_.height, m[2], m[5]));
        }
        t_.roi = {box.x0 / kRoiAlign * kRoiAlign, box.y0 / kRoiAlign * kRoiAlign,
                  std::min(round_up(box.x1, kRoiAlign), canvas_.width),
                  std::min(round_up(box.y1, kRoiAlign), canvas_.height)};
    }

    void fill_alpha() {
        alpha_.assign(static_cast<size_t>(t_.columns) * static_cast<size_t>(t_.roi.height()), 0);
        for (int row = 0; row < t_.roi.height(); ++row) {
            for (int column = 0; column < t_.roi.width(); ++column) {
                const double weight =
                    mask_.opacity * weight_at(t_.roi.x0 + column, t_.roi.y0 + row);
                alpha_[cell(row, column)] = static_cast<int32_t>(std::lrint(weight * kWeightOne));
            }
        }
    }

    [[nodiscard]] size_t cell(int row, int column) const {
        return static_cast<size_t>(row) * static_cast<size_t>(t_.columns) +
               static_cast<size_t>(column);
    }

    // True when every pixel of the group has this alpha in both rows of the pair.
    [[nodiscard]] bool group_is(int row, int column, int32_t alpha) const {
        for (int i = column; i < column + kernels_.group; ++i) {
            if (alpha_[cell(row, i)] != alpha || alpha_[cell(row + 1, i)] != alpha) return false;
        }
        return true;
    }

    [[nodiscard]] RowSpan span_of_pair(int row) const {
        const int step = kernels_.group;
        RowSpan span{0, 0, 0, t_.columns};
        while (span.begin < span.end && group_is(row, span.begin, 0)) span.begin += step;
        while (span.begin < span.end && group_is(row, span.end - step, 0)) span.end -= step;
        span.full_begin = span.begin;
        while (span.full_begin < span.end && !group_is(row, span.full_begin, kWeightOne)) {
            span.full_begin += step;
        }
        span.full_end = span.full_begin;
        while (span.full_end < span.end && group_is(row, span.full_end, kWeightOne)) {
            span.full_end += step;
        }
        return span;
    }

    void fill_axes() {
        const auto columns = static_cast<size_t>(t_.columns);
        t_.column_offset.assign(columns, 0);
        t_.column_weights.assign(columns, 0);
        for (int i = 0; i < t_.roi.width(); ++i) {
            const Tap tap = tap_at(u_at(t_.roi.x0 + i, t_.roi.y0), crop_size_);
            const auto second = static_cast<int32_t>(std::lrint(tap.share * kWeightOne));
            t_.column_offset[static_cast<size_t>(i)] = 4 * tap.index;
            t_.column_weights[static_cast<size_t>(i)] = pair_of(kWeightOne - second, second);
        }
    }

    void add_row(int row, const RowSpan& span) {
        t_.partial_start.push_back(static_cast<int64_t>(t_.bias.size() / 4));
        if (t_.separable) {
            add_separable_row(row, span);
        } else {
            add_sampled_row(row, span);
        }
        add_bias(row, span.begin, span.full_begin);
        add_bias(row, span.full_end, span.end);
    }

    void use_crop_rows(int first) {
        t_.crop_row_begin = std::min(t_.crop_row_begin, first);
        t_.crop_row_end = std::max(t_.crop_row_end, first + 2);
    }

    void add_separable_row(int row, const RowSpan& span) {
        const Tap tap = row_tap(row);
        t_.row_source.push_back(tap.index);
        t_.row_weights.push_back(mix_weights(tap, kWeightOne));
        for (int column = span.begin; column < span.end; ++column) {
            if (column >= span.full_begin && column < span.full_end) continue;
            t_.mix_weights.push_back(mix_weights(tap, alpha_[cell(row, column)]));
        }
        if (!span.empty()) use_crop_rows(tap.index);
    }

    void add_sampled_row(int row, const RowSpan& span) {
        t_.sample_start.push_back(static_cast<int64_t>(t_.offset.size()));
        for (int column = span.begin; column < span.end; ++column) {
            const int32_t alpha = alpha_[cell(row, column)];
            const Sample sample = sample_at(row, column, alpha);
            t_.offset.push_back(
                static_cast<int32_t>(sample.down * crop_stride(crop_size_) + 4 * sample.across));
            t_.upper.push_back(pair_of(sample.weights[0], sample.weights[1]));
            t_.lower.push_back(pair_of(sample.weights[2], sample.weights[3]));
            if (alpha != 0) use_crop_rows(sample.down);
        }
    }

    // Background part of columns [begin, end), in the kernel's order.
    void add_bias(int row, int begin, int end) {
        const size_t base = t_.bias.size();
        t_.bias.resize(base + 4 * static_cast<size_t>(end - begin), 0);
        for (int column = begin; column < std::min(end, t_.roi.width()); ++column) {
            const int32_t rest = (kWeightOne - alpha_[cell(row, column)]) << kCropBits;
            const size_t pixel = canvas_pixel(row, column);
            const size_t slot = base + 4 * static_cast<size_t>(kernels_.bias_slot(column - begin));
            for (size_t c = 0; c < 3; ++c) {
                t_.bias[slot + c] = canvas_.pixels[3 * pixel + c] * rest + kBlendRounding;
            }
        }
    }

    const RgbImage& canvas_;
    const Affine inverse_;
    const int crop_size_;
    const SoftMask mask_;
    const Kernels& kernels_;
    PasteTables t_;
    std::vector<int32_t> alpha_;  // per ROI cell, 0..kWeightOne
};

}  // namespace

void require_canvas(const RgbImage& image, ErrorCode code) {
    const auto bytes = 3 * static_cast<size_t>(std::max(image.width, 0)) *
                       static_cast<size_t>(std::max(image.height, 0));
    if (image.width < 2 || image.height < 2 || image.width % 2 != 0 || image.height % 2 != 0 ||
        image.pixels.size() != bytes) {
        throw Error(code, fmt::format("picture: found {}x{} with {} bytes, wanted an even size of "
                                      "at least 2x2 and 3 bytes a pixel",
                                      image.width, image.height, image.pixels.size()));
    }
}

double mask_weight(const SoftMask& mask, int crop_size, double u, double v) {
    const double size = crop_size;
    if (mask.linear) {
        const double first_centre = mask.inset_px + 0.5;
        const double width = std::max(mask.feather_px - 1.0, 1e-9);
        const auto missing = [&](double x) {  // 0 inside, 1 at the centre of the outermost pixel
            return std::max(0.0, 1.0 - (std::min(x, size - x) - first_centre) / width);
        };
        return std::max(0.0, 1.0 - std::hypot(missing(u), missing(v)));
    }
    const double past_inset = std::min({u, v, size - u, size - v}) - mask.inset_px;
    if (!(past_inset > 0.0)) return 0.0;
    if (past_inset >= mask.feather_px) return 1.0;
    const double t = past_inset / mask.feather_px;
    return t * t * (3.0 - 2.0 * t);
}

namespace {

void check_geometry(int crop_size, const SoftMask& mask) {
    if (crop_size < 2 || crop_size > 8192) {
        throw Error(ErrorCode::bad_pack,
                    fmt::format("crop size: found {}, wanted 2..8192", crop_size));
    }
    if (!(mask.inset_px >= 0.0) || !(mask.feather_px >= 0.0)) {
        throw Error(ErrorCode::bad_pack,
                    fmt::format("mask: found inset {:g} px, feather {:g} px, wanted both >= 0",
                                mask.inset_px, mask.feather_px));
    }
    if (!(mask.opacity >= 0.0 && mask.opacity <= 1.0)) {
        throw Error(ErrorCode::bad_pack,
                    fmt::format("mask: found opacity {:g}, wanted 0 to 1", mask.opacity));
    }
}

}  // namespace

PasteTables make_paste_tables(const RgbImage& canvas, const Affine& crop_to_canvas, int crop_size,
                              const SoftMask& mask, const Kernels& kernels) {
    check_geometry(crop_size, mask);
    return TableBuilder(canvas, crop_to_canvas, crop_size, mask, kernels).build();
}

RoiTables make_roi_tables(const RgbImage& canvas, const Affine& crop_to_canvas, int crop_size,
                          const SoftMask& mask, bool whole_canvas) {
    require_canvas(canvas, ErrorCode::bad_pack);
    check_geometry(crop_size, mask);
    return TableBuilder(canvas, crop_to_canvas, crop_size, mask, portable_kernels())
        .dense(whole_canvas);
}

}  // namespace newscaster::composite
