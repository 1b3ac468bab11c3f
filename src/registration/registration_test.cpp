#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "core/error_test_util.h"
#include "registration/crop_box.h"
#include "registration/crop_sampler.h"
#include "registration/extractor.h"

namespace newscaster::registration {
namespace {

using ::testing::HasSubstr;
using testing_support::error_of;

struct Point {
    double x = 0.0;
    double y = 0.0;
};

Point map(const Affine& m, double u, double v) {
    return {m[0] * u + m[1] * v + m[2], m[3] * u + m[4] * v + m[5]};
}

// Where the box's own definition puts the share (p, q) of its sides: turned about the centre.
Point on_box(const CropBox& box, double p, double q) {
    const double angle = box.angle_deg * std::acos(-1.0) / 180.0;
    const double dx = (p - 0.5) * box.size;
    const double dy = (q - 0.5) * box.size;
    return {box.x + box.size / 2 + dx * std::cos(angle) - dy * std::sin(angle),
            box.y + box.size / 2 + dx * std::sin(angle) + dy * std::cos(angle)};
}

TEST(CropBox, MapPutsEveryPointOfTheCropOnTheTurnedSquare) {
    std::mt19937 random(5);
    std::uniform_real_distribution<double> place(-500.0, 3000.0);
    std::uniform_real_distribution<double> size(16.0, 4000.0);
    std::uniform_real_distribution<double> angle(-180.0, 180.0);
    std::uniform_real_distribution<double> share(0.0, 1.0);
    for (int i = 0; i < 200; ++i) {
        const CropBox box{place(random), place(random), size(random), i % 4 ? angle(random) : 0.0};
        const int crop_size = i % 2 ? 512 : 97;
        const Affine m = crop_to_picture(box, crop_size);
        const double p = share(random);
        const double q = share(random);
        const Point found = map(m, p * crop_size, q * crop_size);
        const Point wanted = on_box(box, p, q);
        EXPECT_NEAR(found.x, wanted.x, 1e-6);
        EXPECT_NEAR(found.y, wanted.y, 1e-6);
        // No stretch: the same scale in every direction, no mirror.
        EXPECT_NEAR(m[0] * m[4] - m[1] * m[3], box.size * box.size / crop_size / crop_size, 1e-6);
    }
}

TEST(CropBox, WithoutAnAngleTheMapIsExact) {
    const Affine m = crop_to_picture({.x = 710, .y = 160, .size = 500}, 512);
    EXPECT_EQ(m, (Affine{500.0 / 512.0, 0.0, 710.0, 0.0, 500.0 / 512.0, 160.0}));
}

TEST(CropBox, Refusals) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    EXPECT_NO_THROW(check_crop_box({.x = -40, .y = -40, .size = 100}, 64, 64));
    for (const CropBox& box : {CropBox{.x = nan, .size = 50}, CropBox{.size = nan},
                               CropBox{.size = 50, .angle_deg = INFINITY}}) {
        EXPECT_THAT(error_of([&] { check_crop_box(box, 64, 64); }, ErrorCode::bad_input),
                    HasSubstr("finite"));
    }
    for (const double size : {0.0, -5.0, 15.9, 40000.0}) {
        EXPECT_THAT(error_of([&] { check_crop_box({.size = size}, 64, 64); }, ErrorCode::bad_input),
                    HasSubstr("16 to 32768"));
    }
    for (const CropBox& box : {CropBox{.x = 60, .size = 16}, CropBox{.x = -60, .size = 100},
                               CropBox{.y = 1e300, .size = 100}}) {
        EXPECT_THAT(error_of([&] { check_crop_box(box, 64, 64); }, ErrorCode::bad_input),
                    HasSubstr("64x64"));
    }
}

// Smooth in both directions, so that sampling can be compared with the formula itself.
double shade(double x, double y, size_t channel) {
    return 120.0 + 0.4 * x - 0.3 * y + 10.0 * static_cast<double>(channel);
}

RgbImage shaded(int width, int height) {
    RgbImage image{width, height, {}};
    for (int y = 0; y < height; ++y) {
        for (int x = 0; x < width; ++x) {
            for (size_t c = 0; c < 3; ++c) {
                image.pixels.push_back(
                    static_cast<uint8_t>(std::lround(shade(x + 0.5, y + 0.5, c))));
            }
        }
    }
    return image;
}

TEST(Crop, EveryPixelIsTheOneThatPasteBackReplaces) {
    const RgbImage picture = shaded(200, 160);
    for (const CropBox& box : {CropBox{60, 40, 64, 0}, CropBox{50, 30, 90, 33},
                               CropBox{70, 50, 31, -120}, CropBox{10, 10, 130, 0}}) {
        const Affine m = crop_to_picture(box, 64);
        const RgbImage crop = cut_crop(picture, m, 64);
        ASSERT_EQ(crop.width, 64);
        for (int v = 0; v < 64; ++v) {
            for (int u = 0; u < 64; ++u) {
                const Point at = map(m, u + 0.5, v + 0.5);
                if (at.x < 2 || at.y < 2 || at.x > 198 || at.y > 158) continue;
                for (size_t c = 0; c < 3; ++c) {
                    const auto i = 3 * static_cast<size_t>(v * 64 + u) + c;
                    ASSERT_NEAR(crop.pixels[i], shade(at.x, at.y, c), 1.1) << u << "," << v;
                }
            }
        }
    }
}

TEST(Crop, OnePixelToOneIsACopyAndBeyondThePictureIsBlack) {
    const RgbImage picture = shaded(40, 40);
    const RgbImage crop = cut_crop(picture, crop_to_picture({.x = -8, .y = 4, .size = 32}, 32), 32);
    for (int v = 0; v < 32; ++v) {
        for (int u = 0; u < 32; ++u) {
            const auto i = 3 * static_cast<size_t>(v * 32 + u);
            const int wanted =
                u < 8 ? 0 : picture.pixels[3 * static_cast<size_t>((v + 4) * 40 + u - 8)];
            ASSERT_EQ(crop.pixels[i], wanted) << u << "," << v;
        }
    }
}

TEST(Crop, FinePatternsAreAveragedNotPicked) {
    RgbImage stripes{128, 128, {}};
    for (int i = 0; i < 128 * 128; ++i) {
        stripes.pixels.insert(stripes.pixels.end(), 3, i % 2 == 0 ? 0 : 200);
    }
    const RgbImage crop = cut_crop(stripes, crop_to_picture({.size = 128}, 32), 32);
    for (size_t i = 3 * 33; i < 3 * 60; ++i) EXPECT_NEAR(crop.pixels[i], 100, 1);
}

TEST(NetworkImage, IsTheAreaAverage) {
    const RgbImage picture = shaded(12, 12);
    const Tensor same = to_network_image(picture, 12, 12);
    const Tensor third = to_network_image(picture, 4, 4);
    const Tensor uneven = to_network_image(picture, 5, 5);
    double sum = 0.0;
    double sum_uneven = 0.0;
    for (size_t i = 0; i < 144; ++i) {
        EXPECT_FLOAT_EQ(same.as<float>()[i], static_cast<float>(picture.pixels[3 * i]) / 255.0F);
        sum += same.as<float>()[i] / 144.0;
    }
    double block = 0.0;
    for (size_t y = 3; y < 6; ++y) {
        for (size_t x = 6; x < 9; ++x) block += same.as<float>()[y * 12 + x] / 9.0;
    }
    EXPECT_NEAR(third.as<float>()[1 * 4 + 2], block, 1e-6);
    for (size_t i = 0; i < 25; ++i) sum_uneven += uneven.as<float>()[i] / 25.0;
    EXPECT_NEAR(sum_uneven, sum, 1e-6);
}

TEST(NetworkImage, PlanesHoldThePixels) {
    const RgbImage picture = shaded(6, 4);
    const Tensor planes = to_planes(picture);
    ASSERT_EQ(planes.shape(), (Shape{1, 3, 4, 6}));
    for (size_t i = 0; i < 72; ++i) {
        EXPECT_EQ(planes.as<uint8_t>()[i % 3 * 24 + i / 3], picture.pixels[i]);
    }
}

class Extraction : public ::testing::Test {
  protected:
    pack::Pack pack_ =
        pack::Pack::open(std::filesystem::path(NEWSCASTER_SOURCE_DIR) / "packs/studio");
    std::unique_ptr<device::Device> device_ = device::open_device("cpu", {});
};

TEST_F(Extraction, YieldsWhatTheManifestPromises) {
    FaceExtractor extractor(pack_, *device_);
    const RgbImage crop = shaded(512, 512);
    FaceFeatures first = extractor.motion(crop);
    EXPECT_TRUE(first.appearance.empty());
    first.appearance = extractor.appearance(crop);
    const auto& manifest = pack_.manifest();
    EXPECT_EQ(first.motion.size(), static_cast<size_t>(manifest.motion.dims));
    EXPECT_EQ(first.canonical_keypoints.size(), static_cast<size_t>(manifest.keypoints.count * 3));
    for (const auto& [name, spec] : manifest.graph(pack::role::kAppearanceExtractor).outputs) {
        EXPECT_EQ(first.appearance.at(name).shape(), spec.shape) << name;
    }
    // The pictures matter, and a session can be used again.
    const FaceFeatures dark = extractor.motion({512, 512, std::vector<uint8_t>(3 * 512 * 512, 9)});
    EXPECT_NE(dark.motion, first.motion);
    EXPECT_EQ(extractor.motion(crop).motion, first.motion);
}

// Cosine of the angle between two features.
double similarity(const Tensor& a, const Tensor& b) {
    double dot = 0.0;
    double aa = 0.0;
    double bb = 0.0;
    for (size_t i = 0; i < a.as<float>().size(); ++i) {
        const double x = a.as<float>()[i];
        const double y = b.as<float>()[i];
        dot += x * y;
        aa += x * x;
        bb += y * y;
    }
    return dot / std::sqrt(aa * bb);
}

TEST_F(Extraction, ShippedAvatarsAreRecognised) {
    // Their cached features were tuned afterwards, so they are near, not equal.
    const auto tensors_of = [](const std::string& name) {
        return read_safetensors(std::filesystem::path(NEWSCASTER_SOURCE_DIR) / "avatars" / name /
                                "tensors.safetensors");
    };
    const TensorMap anna = tensors_of("anna");
    const auto stored = anna.at("rgb").as<uint8_t>();
    RgbImage crop{512, 512, std::vector<uint8_t>(stored.size())};
    for (size_t i = 0; i < stored.size(); ++i) {
        crop.pixels[i] = stored[i % 3 * (stored.size() / 3) + i / 3];
    }
    FaceExtractor extractor(pack_, *device_);
    const TensorMap found = extractor.appearance(crop);
    const Tensor& f64 = found.at("f64");
    const double own = similarity(f64, anna.at("f64").to_f32());
    EXPECT_GT(own, 0.6);
    for (const char* other : {"marcus", "mei"}) {
        EXPECT_GT(own, similarity(f64, tensors_of(other).at("f64").to_f32()) + 0.1) << other;
    }
}

}  // namespace
}  // namespace newscaster::registration
