#include "sync/lip_tracker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/error_test_util.h"

namespace newscaster::sync {
namespace {

using testing_support::error_of;

constexpr int kWidth = 120;
constexpr int kHeight = 160;
constexpr Box kMouth{20, 30, 100, 130};

// A face of smooth stripes: above the middle it moves with the head, below with head and jaw.
media::VideoPicture face(double head, double jaw) {
    media::VideoPicture picture;
    picture.width = kWidth;
    picture.height = kHeight;
    picture.y.resize(static_cast<size_t>(kWidth) * kHeight);
    const double middle = 0.5 * (kMouth.y0 + kMouth.y1) + head;
    for (int y = 0; y < kHeight; ++y) {
        const double place = y - head - (y > middle ? jaw : 0.0);
        const double luma = 128.0 + 60.0 * std::sin(0.21 * place) + 40.0 * std::sin(0.083 * place);
        for (int x = 0; x < kWidth; ++x) {
            picture.y[static_cast<size_t>(y) * kWidth + static_cast<size_t>(x)] =
                static_cast<uint8_t>(std::lround(luma));
        }
    }
    return picture;
}

TEST(LipTracker, SeesTheJawAndNotTheHead) {
    LipTracker tracker(kMouth);
    EXPECT_NEAR(tracker.opening(face(0.0, 0.0)), 0.0, 1e-9);
    for (const double jaw : {-3.0, 0.0, 1.0, 2.5, 6.0}) {
        for (const double head : {-5.0, 0.0, 3.5}) {
            EXPECT_NEAR(tracker.opening(face(head, jaw)), jaw / kMouth.height(), 0.003)
                << jaw << " " << head;
        }
    }
}

TEST(LipTracker, RefusesBoxesThatDoNotFit) {
    EXPECT_THAT(error_of(
                    [] {
                        LipTracker({10, 10, 30, 110});
                    },
                    ErrorCode::bad_input),
                testing::HasSubstr("20x100"));
    EXPECT_THAT(error_of(
                    [] {
                        LipTracker({-1, 10, 60, 110});
                    },
                    ErrorCode::bad_input),
                testing::HasSubstr("mouth box"));
    LipTracker tracker({20, 30, 121, 130});
    EXPECT_THAT(error_of([&] { (void)tracker.opening(face(0.0, 0.0)); }, ErrorCode::bad_input),
                testing::HasSubstr("120x160"));
}

TEST(Displacement, FindsFractionsOfRows) {
    const auto wave = [](double shift) {
        std::vector<double> rows(60);
        for (size_t i = 0; i < rows.size(); ++i) {
            rows[i] = std::sin(0.3 * (static_cast<double>(i) - shift));
        }
        return rows;
    };
    for (double shift = -5.0; shift <= 5.0; shift += 0.25) {
        EXPECT_NEAR(displacement(wave(shift), wave(0.0), 6), shift, 0.05);
    }
}

}  // namespace
}  // namespace newscaster::sync
