#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "core/error_test_util.h"
#include "media/image.h"
#include "registration/crop_box.h"
#include "registration/crop_sampler.h"
#include "registration/face_finder.h"

namespace newscaster::registration {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing_support::error_of;

Face face_at(double x, double y, double size, double score = 0.9) {
    return {.x0 = x,
            .y0 = y,
            .x1 = x + size,
            .y1 = y + size,
            .score = score,
            .left_eye = {x + 0.3 * size, y + 0.3 * size},
            .right_eye = {x + 0.7 * size, y + 0.3 * size}};
}

TEST(Faces, BoxesOfOneFaceAreJoinedByTheirScores) {
    const auto joined = join_overlapping(
        {face_at(0, 0, 10, 0.6), face_at(100, 0, 30, 0.5), face_at(2, 2, 10, 0.9)});
    ASSERT_EQ(joined.size(), 2U);
    EXPECT_EQ(joined[0].x0, 100.0);  // the larger comes first
    EXPECT_NEAR(joined[1].x0, 2 * 0.9 / 1.5, 1e-9);
    EXPECT_NEAR(joined[1].left_eye.y, (0.6 * 3 + 0.9 * 5) / 1.5, 1e-9);
    EXPECT_EQ(joined[1].score, 0.9);
    EXPECT_TRUE(join_overlapping({}).empty());
}

TEST(Faces, TheLargestIsChosenOfEqualsTheMostCentral) {
    const std::vector<Face> faces{face_at(0, 0, 100), face_at(160, 100, 98), face_at(190, 190, 20)};
    EXPECT_EQ(choose_face(faces, FaceChoice::largest, 400, 400), 1U);
    EXPECT_EQ(choose_face(faces, FaceChoice::most_central, 400, 400), 2U);
    EXPECT_EQ(
        choose_face({face_at(0, 0, 100), face_at(190, 190, 20)}, FaceChoice::largest, 400, 400),
        0U);
}

TEST(Faces, ChoiceByWordOrNumber) {
    const RgbImage picture{400, 400, {}};
    std::vector<FoundFace> faces(2);
    faces[0].face = face_at(0, 0, 100);
    faces[1].face = face_at(190, 190, 20);
    EXPECT_EQ(&choose_face(faces, "largest", picture, "p"), faces.data());
    EXPECT_EQ(&choose_face(faces, "center", picture, "p"), &faces[1]);
    EXPECT_EQ(&choose_face(faces, "2", picture, "p"), &faces[1]);
    EXPECT_EQ(&choose_face(faces, "60,70", picture, "p"), faces.data());
    EXPECT_EQ(&choose_face(faces, "390,0.5", picture, "p"), &faces[1]);
    const auto fault = [&](const std::string& choice, const std::vector<FoundFace>& in) {
        return error_of([&] { static_cast<void>(choose_face(in, choice, picture, "p.png")); },
                        ErrorCode::bad_input);
    };
    EXPECT_THAT(fault("3", faces), HasSubstr("1 to 2"));
    EXPECT_THAT(fault("largest", {}), HasSubstr("p.png: no face was found"));
    for (const char* choice : {"", "0", "-1", "2x", "Largest", "1,", ",1", "1,2,3", "nan,1"}) {
        EXPECT_THAT(fault(choice, faces), HasSubstr("largest, center, a number from 1, or X,Y"));
    }
}

// Points of a drawn face: only those that framing and eyes read matter.
FaceLandmarks drawn_face() {
    FaceLandmarks face;
    face.mesh.assign(FaceLandmarks::kMeshPoints, Point3{});
    std::mt19937 random(2);
    std::uniform_real_distribution<double> inside(-40.0, 40.0);
    for (auto& point : face.mesh) point = {inside(random), inside(random), inside(random)};
    face.mesh[152] = {0, 60, 0};  // chin
    face.mesh[234] = {-50, 0, 0};
    face.mesh[454] = {50, 0, 0};
    face.mesh[105] = {-20, -40, 0};
    face.mesh[33] = {-30, -20, 0};
    face.mesh[133] = {-10, -20, 0};
    face.mesh[362] = {10, -20, 0};
    face.mesh[263] = {30, -20, 0};
    face.mesh[61] = {-15, 30, 0};
    face.mesh[291] = {15, 30, 0};
    face.left_iris = {-20, -20, 0};
    face.right_iris = {18, -20, 0};
    return face;
}

FaceLandmarks moved(FaceLandmarks face, double angle_deg, double scale, double dx, double dy) {
    const double angle = angle_deg * std::acos(-1.0) / 180.0;
    const auto move = [&](Point3& p) {
        p = {scale * (p.x * std::cos(angle) - p.y * std::sin(angle)) + dx,
             scale * (p.x * std::sin(angle) + p.y * std::cos(angle)) + dy, scale * p.z};
    };
    for (auto& point : face.mesh) move(point);
    move(face.left_iris);
    move(face.right_iris);
    return face;
}

TEST(Framing, FollowsTheFormula) {
    const CropBox box = frame_face(drawn_face(), {2.0, 0.0, -0.125, true});
    EXPECT_NEAR(box.size, 200.0, 1e-9);  // 100 x 100 points
    EXPECT_NEAR(box.x, -100.0, 1e-9);
    EXPECT_NEAR(box.y, 10.0 - 25.0 - 100.0, 1e-9);
    EXPECT_NEAR(box.angle_deg, 0.0, 1e-9);
}

TEST(Framing, TurnsScalesAndMovesWithTheFace) {
    const pack::FramingSpec framing{2.3, 0.03, -0.125, true};
    const FaceLandmarks face = drawn_face();
    const CropBox straight = frame_face(face, framing);
    const Affine from = crop_to_picture(straight, 100);
    const auto iris = iris_movement(face, straight);
    const auto open = eye_opening(face);
    for (const double angle : {-170.0, -35.0, 12.0, 90.0}) {
        const FaceLandmarks other = moved(face, angle, 3.0, 500.0, 80.0);
        const CropBox box = frame_face(other, framing);
        EXPECT_NEAR(box.size, 3.0 * straight.size, 1e-6);
        EXPECT_NEAR(box.angle_deg, angle, 1e-6);
        const Affine to = crop_to_picture(box, 100);
        // A point of the crop is the same point of the face.
        FaceLandmarks point;
        point.mesh = {{from[0] * 20 + from[2], from[4] * 70 + from[5], 0}};
        const Point3 there = moved(point, angle, 3.0, 500.0, 80.0).mesh[0];
        EXPECT_NEAR(to[0] * 20 + to[1] * 70 + to[2], there.x, 1e-6);
        EXPECT_NEAR(to[3] * 20 + to[4] * 70 + to[5], there.y, 1e-6);
        for (size_t i = 0; i < 6; ++i) EXPECT_NEAR(iris_movement(other, box)[i], iris[i], 1e-9);
        for (size_t i = 0; i < 2; ++i) EXPECT_NEAR(eye_opening(other)[i], open[i], 1e-6);
    }
    EXPECT_EQ(frame_face(moved(face, 20.0, 1.0, 0.0, 0.0), {2.3, 0.0, 0.0, false}).angle_deg, 0.0);
}

TEST(Eyes, MeasuresByTheirFormulas) {
    FaceLandmarks face = drawn_face();
    for (const size_t lid : {145, 144, 153}) face.mesh[lid] = {0, 0, 0};
    for (const size_t lid : {159, 160, 158}) face.mesh[lid] = {3, 4, 0};
    EXPECT_NEAR(eye_opening(face)[0], 15.0 / 20.0, 1e-6);
    const auto movement = iris_movement(face, {.size = 100});
    EXPECT_EQ(movement[0], 0.0);  // the left iris is centred
    // Right: 2 px towards the nose, e points outwards: (-1 - 1) * 0.02.
    EXPECT_NEAR(movement[1], -0.04, 1e-9);
    EXPECT_NEAR(movement[3], 0.0, 1e-9);
}

class Finder : public ::testing::Test {
  protected:
    static fs::path source(const std::string& path) {
        return fs::path(NEWSCASTER_SOURCE_DIR) / path;
    }
    static RgbImage presenter(const std::string& name) {
        return media::read_image(source("avatars/" + name + "/canvas.png"));
    }
    void SetUp() override {
        // scripts/setup.sh test fetches them.
        ASSERT_TRUE(fs::exists(source("detectors/iris_landmark.tflite")))
            << "run scripts/fetch_detectors.sh";
        finder_ = std::make_unique<FaceFinder>(*device_, source("detectors"));
    }

    std::unique_ptr<device::Device> device_ = device::open_device("cpu", {});
    std::unique_ptr<FaceFinder> finder_;
};

TEST_F(Finder, FramesThePresentersAsTheirMakersDid) {
    const pack::FramingSpec framing{2.9, 0.0, -0.088, true};
    for (const char* name : {"anna", "marcus", "mei"}) {
        const auto faces = finder_->find(presenter(name));
        ASSERT_EQ(faces.size(), 1U) << name;
        const auto& face = faces[0].landmarks;
        EXPECT_GT(face.presence, 0.9);
        const CropBox box = frame_face(face, framing);
        EXPECT_NEAR(box.size, 500.0, 25.0) << name;
        EXPECT_NEAR(box.x + box.size / 2, 960.0, 10.0) << name;
        EXPECT_NEAR(box.y + box.size / 2, 410.0, 10.0) << name;
        EXPECT_NEAR(box.angle_deg, 0.0, 2.0) << name;
        for (const double open : eye_opening(face)) EXPECT_NEAR(open, 0.8, 0.1) << name;
        // They look at the camera.
        for (const double move : iris_movement(face, box)) EXPECT_NEAR(move, 0.0, 0.03) << name;
    }
}

TEST_F(Finder, TurnedFacesGetTurnedBoxes) {
    const RgbImage upright = presenter("mei");
    for (const double angle : {-25.0, 25.0}) {
        // A crop turned one way shows the face turned the other way.
        const RgbImage turned = cut_crop(
            upright, crop_to_picture({.x = 660, .y = 110, .size = 600, .angle_deg = angle}, 600),
            600);
        const auto faces = finder_->find(turned);
        ASSERT_EQ(faces.size(), 1U) << angle;
        const CropBox box = frame_face(faces[0].landmarks, {2.3, 0.0, -0.125, true});
        EXPECT_NEAR(box.angle_deg, -angle, 3.0);
    }
}

TEST_F(Finder, NoFaceIsFoundWhereThereIsNone) {
    RgbImage noise{320, 240, {}};
    std::mt19937 random(4);
    for (int i = 0; i < 320 * 240 * 3; ++i) {
        noise.pixels.push_back(static_cast<uint8_t>(random() >> 24U));
    }
    EXPECT_TRUE(finder_->find(noise).empty());
    EXPECT_TRUE(finder_->find({64, 48, std::vector<uint8_t>(64 * 48 * 3, 200)}).empty());
    EXPECT_TRUE(finder_->find({16, 16, std::vector<uint8_t>(16 * 16 * 3, 0)}).empty());
}

TEST_F(Finder, MissingAndForeignFilesAreNamed) {
    EXPECT_THAT(error_of([&] { FaceFinder(*device_, source("docs")); }),
                HasSubstr("face_detection_short_range.tflite"));
    EXPECT_THAT(
        error_of([&] { PictureNetwork(*device_, source("detectors/face_landmark.tflite"), {17}); }),
        HasSubstr("17 values"));
}

}  // namespace
}  // namespace newscaster::registration
