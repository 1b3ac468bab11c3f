#include "registration/mouth_cover.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace newscaster::registration {
namespace {

constexpr int kSide = 400;

// A square face of points with the mouth in the lower half.
FaceLandmarks square_face() {
    FaceLandmarks face;
    face.mesh.resize(468);
    for (size_t i = 0; i < face.mesh.size(); ++i) {
        const size_t row = i / 22;
        const size_t column = i % 22;
        face.mesh[i] = {.x = 100.0 + 9.0 * static_cast<double>(column),
                        .y = 100.0 + 9.0 * static_cast<double>(row)};
    }
    face.mesh[10] = {.x = 200, .y = 100};
    face.mesh[152] = {.x = 200, .y = 300};
    face.mesh[2] = {.x = 200, .y = 200};
    face.mesh[61] = {.x = 150, .y = 240};
    face.mesh[291] = {.x = 250, .y = 240};
    return face;
}

RgbImage skin(int light) {
    RgbImage picture{kSide, kSide, {}};
    for (int i = 0; i < kSide * kSide; ++i) {
        const int texture = i % 7 - 3;
        for (const int level : {190, 140, 120}) {
            picture.pixels.push_back(static_cast<uint8_t>(level + light + texture));
        }
    }
    return picture;
}

void cover(RgbImage& picture, int y0, int y1) {
    for (int y = y0; y < y1; ++y) {
        std::fill_n(picture.pixels.begin() + std::ptrdiff_t{3} * kSide * y, 3 * kSide, uint8_t{60});
    }
}

TEST(MouthCover, ACoveredMouthIsTold) {
    MouthCover mouth;
    for (int frame = 0; frame < 20; ++frame) {
        RgbImage picture = skin(0);
        if (frame >= 12) cover(picture, 205, 290);
        mouth.add(picture, square_face());
    }
    const auto shares = mouth.shares();
    ASSERT_EQ(shares.size(), 20U);
    for (size_t i = 0; i < shares.size(); ++i) {
        if (i < 12) {
            EXPECT_LT(shares[i], 0.05) << i;
        } else {
            EXPECT_GT(shares[i], kCoveredShare) << i;
        }
    }
}

TEST(MouthCover, CoveredEyesAndOtherLightAreNotACoveredMouth) {
    MouthCover mouth;
    for (int frame = 0; frame < 20; ++frame) {
        RgbImage picture = skin(frame >= 15 ? 40 : 0);
        if (frame < 5) cover(picture, 110, 160);
        mouth.add(picture, square_face());
    }
    for (const double share : mouth.shares()) EXPECT_LT(share, 0.05);
}

TEST(MouthCover, NoFramesNoShares) {
    EXPECT_TRUE(MouthCover().shares().empty());
}

}  // namespace
}  // namespace newscaster::registration
