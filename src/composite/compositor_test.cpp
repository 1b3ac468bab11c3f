#include "composite/compositor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>
#include <thread>

#include "composite/paste_tables.h"
#include "newscaster/error.h"

namespace newscaster::composite {
namespace {

RgbImage random_image(int width, int height, unsigned seed) {
    std::mt19937 engine(seed);
    std::uniform_int_distribution<int> level(0, 255);
    RgbImage image{width, height, std::vector<uint8_t>(static_cast<size_t>(3 * width * height))};
    for (auto& value : image.pixels) value = static_cast<uint8_t>(level(engine));
    return image;
}

// Values a little outside 0..1 too.
std::vector<float> random_crop(int size, unsigned seed) {
    std::mt19937 engine(seed);
    std::uniform_real_distribution<float> value(-0.1F, 1.1F);
    std::vector<float> crop(static_cast<size_t>(3 * size * size));
    for (auto& v : crop) v = value(engine);
    return crop;
}

// Rotation about the crop's centre, scale, and where that centre lands on the canvas.
Affine placed(double degrees, double scale, int crop, double x, double y) {
    const double angle = degrees * 3.14159265358979323846 / 180.0;
    const double c = scale * std::cos(angle);
    const double s = scale * std::sin(angle);
    const double half = crop / 2.0;
    return {c, -s, x - c * half + s * half, s, c, y - s * half - c * half};
}

struct Case {
    int width, height, crop;
    Affine transform;
    SoftMask mask;
};

std::vector<Case> cases() {
    const SoftMask soft{2.0, 9.0};
    std::vector<Case> list = {
        {128, 96, 48, {1, 0, 37, 0, 1, 21}, soft},            // whole-pixel shift
        {128, 96, 48, {0.97, 0, 36.3, 0, 1.08, 20.9}, soft},  // stretched, odd offsets
        {130, 98, 64, {1, 0, -20.5, 0, 1, -11.25}, soft},     // over the upper left corner
        {130, 98, 64, {1.1, 0, 90.5, 0, 1.1, 60.25}, soft},   // over the lower right corner
        {66, 50, 64, {1.2, 0, -3, 0, 1.2, -5}, soft},         // larger than the canvas
        {128, 96, 48, {-1, 0, 90, 0, 1, 20}, soft},           // mirrored
        {128, 96, 90, {0.31, 0, 50.2, 0, 0.31, 40.7}, soft},  // strongly reduced
        {128, 96, 20, {3.7, 0, 20, 0, 3.7, 11}, soft},        // strongly enlarged
        {128, 96, 33, {1, 0.2, 30, -0.1, 1, 30}, soft},       // sheared, odd crop size
        {64, 64, 40, placed(45, 0.9, 40, 32, 32), {0, 0}},    // hard edge
        {64, 64, 40, placed(0, 1.0, 40, 32, 32), {0, 0}},     // hard edge, separable
        {128, 96, 48, placed(12, 1.0, 48, 64, 48), {0, 30}},  // no pixel of full weight
        {2, 2, 16, {0.25, 0, -1, 0, 0.25, -1}, {0, 1}},       // the smallest canvas
        {128, 96, 2, {20, 0, 40, 0, 20, 30}, {0, 0.2}},       // the smallest crop
    };
    std::mt19937 engine(5);
    std::uniform_real_distribution<double> unit(0.0, 1.0);
    for (int i = 0; i < 24; ++i) {
        const int width = 2 * (20 + static_cast<int>(60 * unit(engine)));
        const int height = 2 * (20 + static_cast<int>(40 * unit(engine)));
        const int crop = 16 + static_cast<int>(70 * unit(engine));
        list.push_back({width,
                        height,
                        crop,
                        placed(360 * unit(engine), 0.4 + unit(engine), crop, width * unit(engine),
                               height * unit(engine)),
                        {4 * unit(engine), 12 * unit(engine)}});
    }
    return list;
}

// NV12 picture with rows longer than the canvas, filled with `fill`.
struct Target {
    int stride;
    std::vector<uint8_t> y, uv;
    Target(int width, int height, uint8_t fill)
        : stride(width + 10),
          y(static_cast<size_t>(stride * height), fill),
          uv(static_cast<size_t>(stride * height / 2), fill) {}
    void paste(const PastePlan& plan, const std::vector<float>& crop) {
        plan.paste(crop, y.data(), stride, uv.data(), stride);
    }
};

std::vector<uint8_t> canvas_of(const RgbImage& image, const std::vector<float>& crop,
                               const PastePlan& plan) {
    RgbImage copy = image;
    plan.paste_rgb(crop, copy);
    return copy.pixels;
}

TEST(PastePlan, EqualsBlendingAndConvertingTheWholeCanvas) {
    unsigned seed = 100;
    for (const Case& c : cases()) {
        const RgbImage canvas = random_image(c.width, c.height, ++seed);
        const auto crop = random_crop(c.crop, ++seed);
        for (const auto& kernel : available_kernels()) {
            SCOPED_TRACE(testing::Message() << "seed " << seed << " kernel " << kernel);
            const PastePlan plan(canvas, c.transform, c.crop, c.mask, kernel);
            RgbImage blended = canvas;
            plan.paste_rgb(crop, blended);
            const Nv12Image wanted = rgb_to_nv12(blended, "baseline");
            // A target full of something else: the ROI must be written everywhere.
            Target target(c.width, c.height, 77);
            target.paste(plan, crop);
            const Box& roi = plan.roi();
            for (int y = 0; y < c.height; ++y) {
                for (int x = 0; x < target.stride; ++x) {
                    const bool inside = x >= roi.x0 && x < roi.x1 && y >= roi.y0 && y < roi.y1;
                    const int luma = target.y[static_cast<size_t>(y * target.stride + x)];
                    const int chroma = target.uv[static_cast<size_t>(y / 2 * target.stride + x)];
                    const auto from = static_cast<size_t>(y * c.width + x);
                    const auto from_uv = static_cast<size_t>(y / 2 * c.width + x);
                    ASSERT_EQ(luma, inside ? wanted.y[from] : 77) << x << ',' << y;
                    ASSERT_EQ(chroma, inside ? wanted.uv[from_uv] : 77) << x << ',' << y;
                    if (inside || x >= c.width) continue;
                    ASSERT_EQ(plan.background().y[from], wanted.y[from]);
                    ASSERT_EQ(plan.background().uv[from_uv], wanted.uv[from_uv]);
                }
            }
        }
    }
}

// Bilinear sampling, mask and blend of one canvas pixel in double.
double reference_pixel(const Case& c, const RgbImage& canvas, const std::vector<float>& crop, int x,
                       int y, int channel) {
    const Affine& m = c.transform;
    const double det = m[0] * m[4] - m[1] * m[3];
    const double dx = x + 0.5 - m[2];
    const double dy = y + 0.5 - m[5];
    const double u = (m[4] * dx - m[1] * dy) / det;
    const double v = (m[0] * dy - m[3] * dx) / det;
    const double background =
        canvas.pixels[static_cast<size_t>(3 * (y * canvas.width + x) + channel)];
    const double weight = mask_weight(c.mask, c.crop, u, v);
    if (weight == 0.0) return background;
    const auto texel = [&](int column, int row) {
        const int cx = std::clamp(column, 0, c.crop - 1);
        const int cy = std::clamp(row, 0, c.crop - 1);
        const double value =
            crop[static_cast<size_t>(channel * c.crop * c.crop + cy * c.crop + cx)];
        return 255.0 * std::clamp(value, 0.0, 1.0);
    };
    const double fu = std::floor(u - 0.5);
    const double fv = std::floor(v - 0.5);
    const double a = u - 0.5 - fu;
    const double b = v - 0.5 - fv;
    const int iu = static_cast<int>(fu);
    const int iv = static_cast<int>(fv);
    const double sampled = (1 - b) * ((1 - a) * texel(iu, iv) + a * texel(iu + 1, iv)) +
                           b * ((1 - a) * texel(iu, iv + 1) + a * texel(iu + 1, iv + 1));
    return background + weight * (sampled - background);
}

TEST(PastePlan, BlendsWithinRoundingOfTheRealValues) {
    unsigned seed = 900;
    for (const Case& c : cases()) {
        const RgbImage canvas = random_image(c.width, c.height, ++seed);
        const auto crop = random_crop(c.crop, ++seed);
        const PastePlan plan(canvas, c.transform, c.crop, c.mask);
        const auto blended = canvas_of(canvas, crop, plan);
        double worst = 0.0;
        for (int y = 0; y < c.height; ++y) {
            for (int x = 0; x < c.width; ++x) {
                for (int channel = 0; channel < 3; ++channel) {
                    const double wanted = reference_pixel(c, canvas, crop, x, y, channel);
                    const double found =
                        blended[static_cast<size_t>(3 * (y * c.width + x) + channel)];
                    worst = std::max(worst, std::abs(found - wanted));
                }
            }
        }
        EXPECT_LE(worst, 0.55) << "seed " << seed;
    }
}

TEST(PastePlan, RoiIsTheSmallestAlignedBox) {
    for (const Case& c : cases()) {
        const PastePlan plan(random_image(c.width, c.height, 1), c.transform, c.crop, c.mask);
        const Affine& m = c.transform;
        const double det = m[0] * m[4] - m[1] * m[3];
        Box tight{c.width, c.height, 0, 0};
        for (int y = 0; y < c.height; ++y) {
            for (int x = 0; x < c.width; ++x) {
                const double dx = x + 0.5 - m[2];
                const double dy = y + 0.5 - m[5];
                const double weight = mask_weight(c.mask, c.crop, (m[4] * dx - m[1] * dy) / det,
                                                  (m[0] * dy - m[3] * dx) / det);
                if (weight < 1e-12) continue;
                tight = {std::min(tight.x0, x), std::min(tight.y0, y), std::max(tight.x1, x + 1),
                         std::max(tight.y1, y + 1)};
            }
        }
        const Box wanted{tight.x0 / 16 * 16, tight.y0 / 16 * 16,
                         std::min((tight.x1 + 15) / 16 * 16, c.width),
                         std::min((tight.y1 + 15) / 16 * 16, c.height)};
        EXPECT_EQ(plan.roi(), wanted);
    }
}

TEST(MaskWeight, LinearProfileIsALineOverPixelCentres) {
    const SoftMask mask{.inset_px = 0.0, .feather_px = 26.0, .linear = true};
    for (int i = 0; i < 26; ++i) {
        EXPECT_NEAR(mask_weight(mask, 512, i + 0.5, 256.0), i / 25.0, 1e-12);
        EXPECT_NEAR(mask_weight(mask, 512, 256.0, 511.5 - i), i / 25.0, 1e-12);
    }
    EXPECT_EQ(mask_weight(mask, 512, 256.0, 256.0), 1.0);
    // Corner: 1 - the distance to the inner corner, which is 15 and 20 pixels away of 25.
    EXPECT_NEAR(mask_weight(mask, 512, 10.5, 5.5), 0.0, 1e-12);
    EXPECT_NEAR(mask_weight(mask, 512, 22.5, 21.5), 1.0 - 5.0 / 25.0, 1e-12);
}

TEST(PastePlan, MaskIsZeroInTheInsetAndOneInside) {
    const SoftMask mask{4.0, 40.0};
    EXPECT_EQ(mask_weight(mask, 512, 4.0, 256.0), 0.0);
    EXPECT_EQ(mask_weight(mask, 512, 256.0, 509.0), 0.0);
    EXPECT_EQ(mask_weight(mask, 512, -3.0, 256.0), 0.0);
    EXPECT_EQ(mask_weight(mask, 512, 44.0, 44.0), 1.0);
    EXPECT_EQ(mask_weight(mask, 512, 468.0, 256.0), 1.0);
    EXPECT_DOUBLE_EQ(mask_weight(mask, 512, 24.0, 256.0), 0.5);
    EXPECT_DOUBLE_EQ(mask_weight(mask, 512, 14.0, 256.0), 0.15625);  // 3/16 - 2/64
    EXPECT_EQ(mask_weight({0.0, 0.0}, 512, 0.5, 0.5), 1.0);
    EXPECT_EQ(mask_weight({0.0, 0.0}, 512, 512.5, 0.5), 0.0);

    // Seen through a paste of white on black without resampling.
    const RgbImage black{64, 64, std::vector<uint8_t>(64 * 64 * 3, 0)};
    const PastePlan plan(black, {1, 0, 8, 0, 1, 8}, 48, {4.0, 8.0});
    const auto out = canvas_of(black, std::vector<float>(48 * 48 * 3, 1.0F), plan);
    const auto red = [&](int x, int y) { return out[static_cast<size_t>(3 * (64 * y + x))]; };
    for (int i = 0; i < 64; ++i) {
        EXPECT_EQ(red(i, 11), 0);
        EXPECT_EQ(red(52, i), 0);
        if (i < 12 || i >= 52) {
            EXPECT_EQ(red(i, 32), 0) << i;
        } else if (i >= 20 && i < 44) {
            EXPECT_EQ(red(i, 32), 255) << i;
        } else {
            EXPECT_TRUE(red(i, 32) > 0 && red(i, 32) < 255) << i;
        }
    }
}

TEST(PastePlan, OpacityLetsTheCanvasShine) {
    const RgbImage black{64, 64, std::vector<uint8_t>(64 * 64 * 3, 0)};
    const std::vector<float> white(48 * 48 * 3, 1.0F);
    for (const auto& [opacity, level] : {std::pair{0.0, 0}, {0.5, 128}, {1.0, 255}}) {
        const SoftMask mask{4.0, 8.0, false, opacity};
        const PastePlan plan(black, {1, 0, 8, 0, 1, 8}, 48, mask);
        EXPECT_NEAR(canvas_of(black, white, plan)[size_t{3} * (64 * 32 + 32)], level, 1);
    }
    EXPECT_THROW(PastePlan(black, {1, 0, 8, 0, 1, 8}, 48, {4.0, 8.0, false, 1.5}), Error);
}

TEST(PastePlan, PastingTheCanvasIntoItselfChangesNothing) {
    const int size = 40;
    const RgbImage canvas = random_image(96, 80, 3);
    std::vector<float> crop(static_cast<size_t>(3 * size * size));
    for (int c = 0; c < 3; ++c) {
        for (int i = 0; i < size * size; ++i) {
            const int x = 21 + i % size;
            const int y = 17 + i / size;
            crop[static_cast<size_t>(c * size * size + i)] =
                static_cast<float>(canvas.pixels[static_cast<size_t>(3 * (96 * y + x) + c)]) /
                255.0F;
        }
    }
    const PastePlan plan(canvas, {1, 0, 21, 0, 1, 17}, size, {1.0, 8.0});
    EXPECT_EQ(canvas_of(canvas, crop, plan), canvas.pixels);
}

TEST(PastePlan, EveryKernelGivesTheSameBytes) {
    unsigned seed = 300;
    for (const Case& c : cases()) {
        const RgbImage canvas = random_image(c.width, c.height, ++seed);
        const auto crop = random_crop(c.crop, ++seed);
        Target wanted(c.width, c.height, 0);
        wanted.paste(PastePlan(canvas, c.transform, c.crop, c.mask, "baseline"), crop);
        for (const auto& kernel : available_kernels()) {
            Target target(c.width, c.height, 0);
            target.paste(PastePlan(canvas, c.transform, c.crop, c.mask, kernel), crop);
            EXPECT_EQ(target.y, wanted.y) << kernel << " seed " << seed;
            EXPECT_EQ(target.uv, wanted.uv) << kernel << " seed " << seed;
        }
    }
}

TEST(PastePlan, ClampsValuesAndCountsNanAsZero) {
    const int size = 32;
    const RgbImage grey{64, 64, std::vector<uint8_t>(64 * 64 * 3, 128)};
    const std::vector<std::pair<float, int>> values = {
        {std::numeric_limits<float>::quiet_NaN(), 0},
        {-std::numeric_limits<float>::infinity(), 0},
        {std::numeric_limits<float>::infinity(), 255},
        {-3.0F, 0},
        {7.0F, 255},
        {0.5F, 128}};
    for (const double degrees : {0.0, 30.0}) {
        for (const auto& kernel : available_kernels()) {
            const PastePlan plan(grey, placed(degrees, 1.0, size, 32, 32), size, {0, 2}, kernel);
            for (const auto& [value, wanted] : values) {
                const std::vector<float> crop(static_cast<size_t>(3 * size * size), value);
                const auto out = canvas_of(grey, crop, plan);
                EXPECT_EQ(out[3 * (64 * 32 + 32)], wanted) << kernel << ' ' << value;
            }
        }
    }
}

TEST(PastePlan, ThreadsMayShareAPlan) {
    const Case c{128, 96, 48, placed(9, 1.1, 48, 60, 50), {2, 9}};
    const RgbImage canvas = random_image(c.width, c.height, 1);
    const PastePlan plan(canvas, c.transform, c.crop, c.mask);
    std::vector<Target> wanted;
    std::vector<Target> found;
    for (unsigned i = 0; i < 4; ++i) {
        wanted.emplace_back(c.width, c.height, 0);
        wanted.back().paste(plan, random_crop(c.crop, i));
        found.emplace_back(c.width, c.height, 0);
    }
    {
        std::vector<std::jthread> threads;
        for (unsigned i = 0; i < 4; ++i) {
            threads.emplace_back([&, i] {
                const auto crop = random_crop(c.crop, i);
                for (int n = 0; n < 20; ++n) found[i].paste(plan, crop);
            });
        }
    }
    for (size_t i = 0; i < 4; ++i) EXPECT_EQ(found[i].y, wanted[i].y);
}

TEST(PastePlan, RefusesBadGeometry) {
    const RgbImage canvas = random_image(64, 64, 1);
    const SoftMask mask{1, 4};
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const auto code = [&](const Affine& transform, int crop, const SoftMask& soft) {
        try {
            const PastePlan plan(canvas, transform, crop, soft);
        } catch (const Error& error) {
            return static_cast<int>(error.code());
        }
        return 0;
    };
    EXPECT_EQ(code({1, 0, 8, 0, 1, 8}, 32, mask), 0);
    EXPECT_EQ(code({1, 2, 8, 2, 4, 8}, 32, mask), 3) << "singular";
    EXPECT_EQ(code({1, 0, nan, 0, 1, 8}, 32, mask), 3);
    EXPECT_EQ(code({1, 0, 64, 0, 1, 8}, 32, mask), 3) << "beside the canvas";
    EXPECT_EQ(code({1, 0, 8, 0, 1, 8}, 32, {16, 4}), 3) << "mask hides everything";
    EXPECT_EQ(code({1, 0, 8, 0, 1, 8}, 32, {-1, 4}), 3);
    EXPECT_EQ(code({1, 0, 8, 0, 1, 8}, 1, mask), 3);
    EXPECT_THROW(PastePlan(canvas, {1, 0, 8, 0, 1, 8}, 32, mask, "mmx"), Error);

    const PastePlan plan(canvas, {1, 0, 8, 0, 1, 8}, 32, mask);
    Target target(64, 64, 0);
    EXPECT_THROW(target.paste(plan, std::vector<float>(32 * 32)), Error);
}

}  // namespace
}  // namespace newscaster::composite
