#include "composite/compositor.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>

#include "composite/kernels.h"
#include "composite/paste_tables.h"
#include "newscaster/error.h"

namespace newscaster::composite {
namespace {

// Working memory of one paste() call.
struct Scratch {
    std::vector<int16_t> crop;                      // general: the crop; separable: one row of it
    std::array<std::vector<int16_t>, 2> resampled;  // separable: rows of even and odd crop index
    std::array<int, 2> resampled_row{};             // which crop row each holds, -1 = none
    std::array<std::vector<uint8_t>, 2> rgbx;       // a pair of blended rows
};

}  // namespace

Nv12Image rgb_to_nv12(const RgbImage& image, std::string_view kernel) {
    require_canvas(image, ErrorCode::bad_input);
    const Kernels& kernels = find_kernels(kernel);
    const auto width = static_cast<size_t>(image.width);
    const auto height = static_cast<size_t>(image.height);
    Nv12Image out{image.width, image.height, std::vector<uint8_t>(width * height),
                  std::vector<uint8_t>(width * height / 2)};
    std::vector<uint8_t> top(4 * width);
    std::vector<uint8_t> bottom(4 * width);
    for (size_t y = 0; y < height; y += 2) {
        kernels.rgb_to_rgbx(&image.pixels[3 * width * y], image.width, top.data());
        kernels.rgb_to_rgbx(&image.pixels[3 * width * (y + 1)], image.width, bottom.data());
        kernels.rgbx_to_nv12(top.data(), bottom.data(), image.width, &out.y[width * y],
                             &out.y[width * (y + 1)], &out.uv[width * (y / 2)]);
    }
    return out;
}

struct PastePlan::Impl {
    const Kernels& kernels;
    int crop_size;
    PasteTables tables;
    Nv12Image background;

    // Idle working memory, kept so that a paste allocates nothing once warm.
    std::mutex pool_mutex;
    std::vector<std::unique_ptr<Scratch>> pool;

    Impl(const RgbImage& canvas, const Affine& crop_to_canvas, int size, const SoftMask& mask,
         std::string_view kernel)
        : kernels(find_kernels(kernel)), crop_size(size) {
        require_canvas(canvas, ErrorCode::bad_pack);
        tables = make_paste_tables(canvas, crop_to_canvas, size, mask, kernels);
        background = rgb_to_nv12(canvas, kernel);
    }

    std::unique_ptr<Scratch> take_scratch() {
        {
            const std::lock_guard lock(pool_mutex);
            if (!pool.empty()) {
                auto scratch = std::move(pool.back());
                pool.pop_back();
                return scratch;
            }
        }
        auto scratch = std::make_unique<Scratch>();
        const auto columns = static_cast<size_t>(tables.columns);
        const auto stride = static_cast<size_t>(crop_stride(crop_size));
        scratch->crop.resize(tables.separable ? stride : stride * static_cast<size_t>(crop_size));
        if (tables.separable) {
            for (auto& row : scratch->resampled) row.resize(4 * columns);
        }
        for (auto& row : scratch->rgbx) row.resize(4 * columns);
        return scratch;
    }

    void give_back(std::unique_ptr<Scratch> scratch) {
        const std::lock_guard lock(pool_mutex);
        pool.push_back(std::move(scratch));
    }

    void quantize_row(std::span<const float> crop, int row, int16_t* out) const {
        const auto size = static_cast<size_t>(crop_size);
        const float* r = crop.data() + size * static_cast<size_t>(row);
        kernels.quantize_row(r, r + size * size, r + 2 * size * size, crop_size, out);
    }

    void start(std::span<const float> crop, Scratch& scratch) const {
        scratch.resampled_row = {-1, -1};
        if (tables.separable) return;
        for (int row = tables.crop_row_begin; row < tables.crop_row_end; ++row) {
            quantize_row(crop, row, scratch.crop.data() + row * crop_stride(crop_size));
        }
    }

    // Horizontally resampled crop row. Two neighbours differ in parity, so both stay available.
    const int16_t* resampled_row(std::span<const float> crop, int row, Scratch& scratch) const {
        const auto slot = static_cast<size_t>(row % 2);
        auto& out = scratch.resampled[slot];
        if (scratch.resampled_row[slot] != row) {
            quantize_row(crop, row, scratch.crop.data());
            kernels.resample_columns(scratch.crop.data(), tables.column_offset.data(),
                                     tables.column_weights.data(), 0, tables.columns, out.data());
            scratch.resampled_row[slot] = row;
        }
        return out.data();
    }

    // Blends ROI row `row` within its span.
    void blend_row(std::span<const float> crop, int row, Scratch& scratch, uint8_t* rgbx) const {
        const auto r = static_cast<size_t>(row);
        const RowSpan& span = tables.spans[r / 2];
        const int64_t partial = tables.partial_start[r];
        if (tables.separable) {
            const int source = tables.row_source[r];
            const int16_t* upper = resampled_row(crop, source, scratch);
            const int16_t* lower = resampled_row(crop, source + 1, scratch);
            kernels.mix_row({span, upper, lower, tables.row_weights[r],
                             tables.mix_weights.data() + partial, tables.bias.data() + 4 * partial},
                            rgbx);
            return;
        }
        const int64_t first = tables.sample_start[r];
        kernels.sample_row({span, scratch.crop.data(), crop_stride(crop_size),
                            tables.offset.data() + first, tables.upper.data() + first,
                            tables.lower.data() + first, tables.bias.data() + 4 * partial},
                           rgbx);
    }

    // Blends every pair of ROI rows and hands it to visit(pair index, top, bottom); pairs without
    // any visible pixel are visited too.
    template <class Visit>
    void for_each_pair(std::span<const float> crop, const Visit& visit) {
        const auto wanted = 3 * static_cast<size_t>(crop_size) * static_cast<size_t>(crop_size);
        if (crop.size() != wanted) {
            throw Error(ErrorCode::runtime,
                        fmt::format("crop: found {} values, wanted {}", crop.size(), wanted));
        }
        auto scratch = take_scratch();
        start(crop, *scratch);
        uint8_t* top = scratch->rgbx[0].data();
        uint8_t* bottom = scratch->rgbx[1].data();
        for (int pair = 0; pair < tables.roi.height() / 2; ++pair) {
            if (!tables.spans[static_cast<size_t>(pair)].empty()) {
                blend_row(crop, 2 * pair, *scratch, top);
                blend_row(crop, 2 * pair + 1, *scratch, bottom);
            }
            visit(pair, top, bottom);
        }
        give_back(std::move(scratch));
    }

    // Background of ROI columns [begin, end) of a pair of rows.
    void restore(int pair, int begin, int end, uint8_t* y, int y_stride, uint8_t* uv,
                 int uv_stride) const {
        if (begin >= end) return;
        const auto count = static_cast<size_t>(end - begin);
        const int64_t x = tables.roi.x0 + begin;
        const int64_t row = tables.roi.y0 + 2 * pair;
        const int64_t width = background.width;
        std::memcpy(y + row * y_stride + x, background.y.data() + row * width + x, count);
        std::memcpy(y + (row + 1) * y_stride + x, background.y.data() + (row + 1) * width + x,
                    count);
        std::memcpy(uv + row / 2 * uv_stride + x, background.uv.data() + row / 2 * width + x,
                    count);
    }
};

PastePlan::PastePlan(const RgbImage& canvas, const Affine& crop_to_canvas, int crop_size,
                     const SoftMask& mask, std::string_view kernel)
    : impl_(std::make_unique<Impl>(canvas, crop_to_canvas, crop_size, mask, kernel)) {}
PastePlan::~PastePlan() = default;
PastePlan::PastePlan(PastePlan&&) noexcept = default;
PastePlan& PastePlan::operator=(PastePlan&&) noexcept = default;

const Box& PastePlan::roi() const {
    return impl_->tables.roi;
}
const Nv12Image& PastePlan::background() const {
    return impl_->background;
}

void PastePlan::paste(std::span<const float> crop, uint8_t* y, int y_stride, uint8_t* uv,
                      int uv_stride) const {
    const PasteTables& tables = impl_->tables;
    const int roi_width = tables.roi.width();
    impl_->for_each_pair(crop, [&](int pair, const uint8_t* top, const uint8_t* bottom) {
        const RowSpan& span = tables.spans[static_cast<size_t>(pair)];
        if (span.empty()) {
            impl_->restore(pair, 0, roi_width, y, y_stride, uv, uv_stride);
            return;
        }
        const int end = std::min(span.end, roi_width);
        impl_->restore(pair, 0, span.begin, y, y_stride, uv, uv_stride);
        impl_->restore(pair, end, roi_width, y, y_stride, uv, uv_stride);
        const int64_t x = tables.roi.x0 + span.begin;
        const int64_t row = tables.roi.y0 + 2 * pair;
        impl_->kernels.rgbx_to_nv12(top + 4 * span.begin, bottom + 4 * span.begin, end - span.begin,
                                    y + row * y_stride + x, y + (row + 1) * y_stride + x,
                                    uv + row / 2 * uv_stride + x);
    });
}

void PastePlan::paste_rgb(std::span<const float> crop, RgbImage& canvas) const {
    const PasteTables& tables = impl_->tables;
    if (canvas.width != impl_->background.width || canvas.height != impl_->background.height) {
        throw Error(ErrorCode::runtime,
                    fmt::format("canvas: found {}x{}, wanted {}x{}", canvas.width, canvas.height,
                                impl_->background.width, impl_->background.height));
    }
    impl_->for_each_pair(crop, [&](int pair, const uint8_t* top, const uint8_t* bottom) {
        const RowSpan& span = tables.spans[static_cast<size_t>(pair)];
        for (int line = 0; line < 2; ++line) {
            const uint8_t* from = line == 0 ? top : bottom;
            uint8_t* to =
                canvas.pixels.data() +
                3 * ((tables.roi.y0 + 2 * pair + line) * int64_t{canvas.width} + tables.roi.x0);
            for (int x = span.begin; x < std::min(span.end, tables.roi.width()); ++x) {
                std::memcpy(to + 3 * x, from + 4 * x, 3);
            }
        }
    });
}

}  // namespace newscaster::composite
