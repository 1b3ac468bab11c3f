// Paste-back on a device against the compositor, byte for byte: the kernel's text compiled for this
// machine, and the kernel itself where there is a GPU.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>
#include <random>
#include <vector>

#include "composite/compositor.h"
#include "device/device.h"
#include "newscaster/error.h"

namespace newscaster {
namespace host_kernel {

// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): CUDA's own words
#define __device__
inline int __float2int_rn(float value) {
    return static_cast<int>(std::lrintf(value));
}
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#include "device/cuda/roi_paste.cuh"
#pragma GCC diagnostic pop
#undef __device__
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

RoiView view_of(const RoiTables& t) {
    return {t.width,
            t.height,
            t.crop_size,
            t.separable ? 1 : 0,
            t.background.data(),
            t.column_tap.data(),
            t.column_weights.data(),
            t.row_tap.data(),
            t.mix_weights.data(),
            t.tap.data(),
            t.upper.data(),
            t.lower.data()};
}

}  // namespace host_kernel

namespace {

struct Scene {
    RgbImage canvas;
    Affine crop_to_canvas{};
    int crop_size = 0;
    composite::SoftMask mask;
    std::vector<float> crop;
};

// Axis-aligned scenes for even seeds, turned ones for odd seeds; some reach over the edge.
Scene scene(unsigned seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> unit(0.0, 1.0);
    Scene made;
    const int width = 2 * (20 + static_cast<int>(60 * unit(random)));
    const int height = 2 * (20 + static_cast<int>(40 * unit(random)));
    made.canvas = {width, height, std::vector<uint8_t>(static_cast<size_t>(3 * width * height))};
    for (auto& value : made.canvas.pixels) value = static_cast<uint8_t>(256 * unit(random));
    made.crop_size = 16 + static_cast<int>(70 * unit(random));
    const double angle = seed % 2 == 0 ? 0.0 : 2.0 * std::numbers::pi * unit(random);
    const double c = (0.4 + unit(random)) * std::cos(angle);
    const double s = c == 0.0 ? 0.0 : c * std::tan(angle);
    const double half = made.crop_size / 2.0;
    const double x = width * (0.2 + 0.6 * unit(random));
    const double y = height * (0.2 + 0.6 * unit(random));
    made.crop_to_canvas = {c, -s, x - c * half + s * half, s, c, y - s * half - c * half};
    made.mask = {3 * unit(random), 12 * unit(random), seed % 3 == 0};
    made.crop.resize(static_cast<size_t>(3 * made.crop_size * made.crop_size));
    for (auto& value : made.crop) value = static_cast<float>(1.2 * unit(random) - 0.1);
    made.crop.front() = std::numeric_limits<float>::quiet_NaN();
    return made;
}

// The compositor's ROI, packed like a RoiPaster's result.
std::vector<uint8_t> pasted_by_compositor(const Scene& scene, bool whole_canvas) {
    const composite::PastePlan plan(scene.canvas, scene.crop_to_canvas, scene.crop_size,
                                    scene.mask);
    Nv12Image picture = plan.background();
    const int stride = picture.width;
    plan.paste(scene.crop, picture.y.data(), stride, picture.uv.data(), stride);
    const Box box = whole_canvas ? Box{0, 0, picture.width, picture.height} : plan.roi();
    std::vector<uint8_t> packed;
    const auto add = [&](const std::vector<uint8_t>& plane, int begin, int end) {
        for (int row = begin; row < end; ++row) {
            const auto first = plane.begin() + int64_t{row} * stride + box.x0;
            packed.insert(packed.end(), first, first + box.width());
        }
    };
    add(picture.y, box.y0, box.y1);
    add(picture.uv, box.y0 / 2, box.y1 / 2);
    return packed;
}

RoiTables tables_of(const Scene& scene, bool whole_canvas) {
    return composite::make_roi_tables(scene.canvas, scene.crop_to_canvas, scene.crop_size,
                                      scene.mask, whole_canvas);
}

constexpr unsigned kScenes = 40;

TEST(RoiPaste, TheKernelsTextGivesTheCompositorsBytes) {
    for (unsigned seed = 0; seed < kScenes; ++seed) {
        SCOPED_TRACE(seed);
        const Scene made = scene(seed);
        for (const bool whole : {false, true}) {
            const auto wanted = pasted_by_compositor(made, whole);
            const RoiTables tables = tables_of(made, whole);
            EXPECT_EQ(tables.separable, seed % 2 == 0);
            std::vector<uint8_t> found(wanted.size(), 0xaa);
            ASSERT_EQ(static_cast<size_t>(tables.width * tables.height * 3 / 2), wanted.size());
            for (int block = 0; block < tables.width / 2 * (tables.height / 2); ++block) {
                host_kernel::paste_block(host_kernel::view_of(tables), block, made.crop.data(),
                                         found.data());
            }
            EXPECT_EQ(found, wanted);
        }
    }
}

TEST(RoiPaste, TheGpuGivesTheCompositorsBytes) {
    std::unique_ptr<device::Device> device;
    try {
        device = device::open_device("cuda", {});
    } catch (const Error& error) {
        GTEST_SKIP() << error.what();
    }
    const auto stream = device->make_stream();
    for (unsigned seed = 0; seed < kScenes; ++seed) {
        SCOPED_TRACE(seed);
        const Scene made = scene(seed);
        const auto wanted = pasted_by_compositor(made, false);
        const auto paster = device->make_roi_paster(tables_of(made, false));
        // The second of two crops, to an offset: places are honoured.
        const device::TensorInfo crops{"crops", DType::f32, {2, 3, made.crop_size, made.crop_size}};
        const auto source = device->allocate(crops, device::Location::pinned);
        const auto values = source->host_f32();
        std::ranges::copy(made.crop, values.subspan(made.crop.size()).begin());
        const auto input = device->allocate(crops, device::Location::device);
        const device::TensorInfo bytes{"nv12", DType::u8, {2, static_cast<int64_t>(wanted.size())}};
        const auto output = device->allocate(bytes, device::Location::device);
        const auto result = device->allocate(bytes, device::Location::pinned);
        device->copy(*source, *input, *stream);
        paster->paste(*input, 1, *output, wanted.size(), *stream);
        device->copy(*output, *result, *stream);
        stream->synchronize();
        EXPECT_EQ(std::memcmp(result->host_data() + wanted.size(), wanted.data(), wanted.size()),
                  0);
        EXPECT_TRUE(std::all_of(result->host_data(), result->host_data() + wanted.size(),
                                [](std::byte value) { return value == std::byte{0}; }));
        EXPECT_THROW(paster->paste(*input, 2, *output, 0, *stream), Error);
    }
}

}  // namespace
}  // namespace newscaster
