#include "registration/material.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <random>

#include "registration/crop_sampler.h"

namespace newscaster::registration {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int kSide = 512;

// A face looking into the camera, turned about the vertical and the horizontal axis. All points lie
// on a plane; those that are measured where they are in a face.
FaceLandmarks face(double size, double yaw_deg = 0.0, double pitch_deg = 0.0, double mouth = 0.02,
                   double lids = 0.28) {
    std::mt19937 random(1);
    std::uniform_real_distribution<double> unit(-0.5, 0.5);
    FaceLandmarks made;
    made.presence = 1.0;
    std::vector<Point3> flat(FaceLandmarks::kMeshPoints);
    for (auto& point : flat) point = {0.6 * unit(random), 0.6 * unit(random), 0.0};
    flat[33] = {-0.3, -0.15, 0.0};
    flat[263] = {0.3, -0.15, 0.0};
    flat[10] = {0.0, -0.5, 0.0};
    flat[152] = {0.0, 0.5, 0.0};
    flat[78] = {-0.15, 0.25, 0.0};
    flat[308] = {0.15, 0.25, 0.0};
    flat[13] = {0.0, 0.25 - 0.15 * mouth, 0.0};
    flat[14] = {0.0, 0.25 + 0.15 * mouth, 0.0};
    // Lids: three pairs for each eye, see eye_opening().
    const auto eye = [&](std::array<size_t, 8> points, double side) {
        const double width = 0.15;
        flat[points[0]] = {side * 0.3, -0.15, 0.0};
        flat[points[1]] = {side * (0.3 - width), -0.15, 0.0};
        for (size_t pair = 0; pair < 3; ++pair) {
            const double x = side * (0.3 - width * 0.25 * static_cast<double>(pair + 1));
            flat[points[2 + pair]] = {x, -0.15 - 0.5 * width * lids, 0.0};
            flat[points[5 + pair]] = {x, -0.15 + 0.5 * width * lids, 0.0};
        }
    };
    eye({33, 133, 160, 159, 158, 144, 145, 153}, -1.0);
    eye({263, 362, 387, 386, 385, 373, 374, 380}, 1.0);
    const double yaw = yaw_deg * std::numbers::pi / 180.0;
    const double pitch = pitch_deg * std::numbers::pi / 180.0;
    for (const Point3& p : flat) {
        // About x (a nod down brings the forehead towards the camera), then about y.
        const double y = p.y * std::cos(pitch);
        const double z = p.y * std::sin(pitch);
        made.mesh.push_back({kSide / 2.0 + size * (p.x * std::cos(yaw) - z * std::sin(yaw)),
                             kSide / 2.0 + size * y,
                             size * (p.x * std::sin(yaw) + z * std::cos(yaw))});
    }
    return made;
}

RgbImage noise(int level, int spread) {
    std::mt19937 random(2);
    RgbImage image{kSide, kSide, std::vector<uint8_t>(3 * kSide * kSide)};
    for (size_t i = 0; i < image.pixels.size(); i += 3) {
        const int value =
            level + static_cast<int>(random() % static_cast<unsigned>(spread + 1)) - spread / 2;
        std::fill_n(image.pixels.begin() + static_cast<std::ptrdiff_t>(i), 3,
                    static_cast<uint8_t>(std::clamp(value, 0, 255)));
    }
    return image;
}

FrameMeasures measured(const FaceLandmarks& landmarks, const RgbImage& picture) {
    return measure_frame(picture, picture, landmarks);
}

TEST(Material, AFaceIntoTheCameraIsGood) {
    const auto measures = measured(face(400), noise(120, 60));
    EXPECT_NEAR(measures.yaw_deg, 0.0, 1e-9);
    EXPECT_NEAR(measures.pitch_deg, 0.0, 1e-9);
    EXPECT_NEAR(measures.mouth_open, 0.02, 1e-9);
    EXPECT_NEAR(measures.brightness, 120.0, 2.0);
    EXPECT_EQ(measures.inside, 1.0);
    EXPECT_EQ(measures.dark_share, 0.0);
    const Verdict verdict = judge({measures});
    EXPECT_EQ(verdict.word, "good");
    EXPECT_THAT(verdict.advice, IsEmpty());
}

TEST(Material, PoseIsMeasured) {
    for (const double angle : {-40.0, -10.0, 25.0}) {
        EXPECT_NEAR(measured(face(400, angle), noise(120, 60)).yaw_deg, angle, 1e-6);
        EXPECT_NEAR(measured(face(400, 0.0, angle), noise(120, 60)).pitch_deg, angle, 1e-6);
    }
    EXPECT_EQ(judge({measured(face(400, 25.0), noise(120, 60))}).word, "usable");
    const Verdict verdict = judge({measured(face(400, -40.0), noise(120, 60))});
    EXPECT_EQ(verdict.word, "poor");
    EXPECT_THAT(verdict.advice, Contains(HasSubstr("40 degrees")));
}

TEST(Material, LightAndSizeAreJudged) {
    EXPECT_THAT(judge({measured(face(400), noise(40, 20))}).advice, Contains(HasSubstr("dark")));
    EXPECT_EQ(judge({measured(face(400), noise(20, 10))}).word, "poor");
    EXPECT_THAT(judge({measured(face(400), noise(252, 4))}).advice,
                Contains(HasSubstr("overexposed")));
    EXPECT_THAT(judge({measured(face(150), noise(120, 60))}).advice,
                Contains(HasSubstr("pixels wide")));
}

TEST(Material, BlurIsFoundWhateverTheContrast) {
    for (const int spread : {20, 120}) {
        const RgbImage sharp = noise(120, spread);
        const double before = measured(face(400), sharp).sharpness;
        // Half the pixels, enlarged again: the finest details are gone.
        const RgbImage small = cut_crop(sharp, {2.0, 0.0, 0.0, 0.0, 2.0, 0.0}, kSide / 2);
        const RgbImage soft = cut_crop(small, {0.5, 0.0, 0.0, 0.0, 0.5, 0.0}, kSide);
        const double after = measured(face(400), soft).sharpness;
        EXPECT_GT(before, 1.5 * after) << spread;
    }
}

TEST(Material, AMouthThatIsOpenOrTalksIsToldApart) {
    const auto picture = noise(120, 60);
    EXPECT_THAT(judge({measured(face(400, 0, 0, 0.3), picture)}).advice,
                Contains(HasSubstr("mouth is open")));
    EXPECT_THAT(
        judge({measured(face(400, 0, 0, 0.02), picture), measured(face(400, 0, 0, 0.3), picture)})
            .advice,
        Contains(HasSubstr("talks in the clip")));
    EXPECT_EQ(judge({measured(face(400), picture), measured(face(400), picture)}).word, "good");
}

TEST(Material, PointsAreDrawnWhereTheCropShowsThem) {
    const auto landmarks = face(400);
    const Affine map{0.5, 0.0, 128.0,
                     0.0, 0.5, 128.0};  // the middle of the picture, twice as large
    const RgbImage drawn =
        with_points({kSide, kSide, std::vector<uint8_t>(3 * kSide * kSide)}, landmarks, map);
    const Point3& chin = landmarks.mesh[152];
    const auto x = static_cast<size_t>((chin.x - 128.0) / 0.5);
    const auto y = static_cast<size_t>(std::min((chin.y - 128.0) / 0.5, kSide - 1.0));
    EXPECT_LT(chin.y, kSide);
    const Point3& lip = landmarks.mesh[13];
    const auto lip_x = static_cast<size_t>((lip.x - 128.0) / 0.5);
    const auto lip_y = static_cast<size_t>((lip.y - 128.0) / 0.5);
    EXPECT_EQ(drawn.pixels[3 * (lip_y * kSide + lip_x) + 1], 255);
    EXPECT_GT(x + y, 0U);
}

}  // namespace
}  // namespace newscaster::registration
