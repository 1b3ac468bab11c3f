// Seams, pictures, plots and reports on hand-made pictures and numbers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "forensics/measurements.h"
#include "forensics/pictures.h"
#include "forensics/report.h"
#include "newscaster/error.h"

namespace newscaster::forensics {
namespace {

using ::testing::HasSubstr;

constexpr int kWidth = 64;
constexpr int kHeight = 48;
constexpr Box kFace{16, 16, 48, 40};

// A smooth picture; inside the face `lift` brighter, chroma moved by `shift` luma pixels.
media::VideoPicture picture(int lift, double shift = 0.0) {
    media::VideoPicture p;
    p.width = kWidth;
    p.height = kHeight;
    for (int y = 0; y < kHeight; ++y) {
        for (int x = 0; x < kWidth; ++x) {
            const bool inside = x >= kFace.x0 && x < kFace.x1 && y >= kFace.y0 && y < kFace.y1;
            p.y.push_back(static_cast<uint8_t>(120 + (inside ? lift : 0)));
        }
    }
    for (int y = 0; y < kHeight / 2; ++y) {
        for (int x = 0; x < kWidth / 2; ++x) {
            const double at = 2.0 * x - shift;
            const auto wave = [&](double phase) {
                return static_cast<uint8_t>(std::lround(128 + 40 * std::sin(0.15 * at + phase) +
                                                        40 * std::sin(0.2 * y + phase)));
            };
            p.u.push_back(wave(0.0));
            p.v.push_back(wave(1.0));
        }
    }
    return p;
}

TEST(Seam, SeesAStepAtTheBorderAndNoneWithoutOne) {
    const SeamMetrics clean = inspect_seam(picture(0), picture(0), kFace);
    const SeamMetrics step = inspect_seam(picture(0), picture(12), kFace);
    EXPECT_GT(step.across_mean, clean.across_mean + 2.0);
    EXPECT_NEAR(step.beside_mean, clean.beside_mean, 0.3);
    EXPECT_GE(step.across_max, step.across_mean);
}

TEST(Seam, MeasuresTheHaloByDistance) {
    const SeamMetrics seam = inspect_seam(picture(0), picture(12), kFace);
    for (size_t ring = 0; ring < seam.halo.size(); ++ring) {
        const bool inside = ring < static_cast<size_t>(SeamMetrics::kReach);
        EXPECT_EQ(seam.halo.at(ring), inside ? 12.0 : 0.0) << ring;
    }
}

TEST(Seam, FindsChromaThatIsOutOfPhase) {
    EXPECT_NEAR(inspect_seam(picture(0), picture(0), kFace).chroma_phase_x, 0.0, 1e-9);
    EXPECT_NEAR(inspect_seam(picture(0), picture(0, 1.0), kFace).chroma_phase_x, 1.0, 0.1);
    EXPECT_NEAR(inspect_seam(picture(0), picture(0, -0.5), kFace).chroma_phase_x, -0.5, 0.1);
}

TEST(Pictures, EnlargeReduceAndSubtract) {
    const RgbImage image{2, 1, {10, 20, 30, 40, 50, 60}};
    const RgbImage large = enlarged(image, 2);
    EXPECT_EQ(large.width, 4);
    EXPECT_EQ(large.height, 2);
    EXPECT_EQ(large.pixels[3], 10);
    EXPECT_EQ(large.pixels[6], 40);
    EXPECT_EQ(reduced(large, 2).pixels, image.pixels);
    EXPECT_EQ(reduced(image, 2).pixels, image.pixels);
    const RgbImage brighter{2, 1, {11, 20, 30, 40, 50, 0}};
    EXPECT_EQ(difference_map(image, brighter, 5).pixels,
              (std::vector<uint8_t>{133, 128, 128, 128, 128, 0}));
}

TEST(Pictures, StandSideBySide) {
    const RgbImage dark{2, 2, std::vector<uint8_t>(12, 7)};
    const RgbImage sheet = montage({{dark, dark, dark}, {dark, dark, dark}});
    EXPECT_EQ(sheet.width, 3 * 2 + 2 * 4);
    EXPECT_EQ(sheet.height, 2 * 2 + 4);
    EXPECT_EQ(sheet.pixels.front(), 7);
    EXPECT_EQ(sheet.pixels[3 * 2], 255);
    EXPECT_EQ(sheet.pixels.back(), 7);
}

Measured measured(const std::vector<std::optional<double>>& mouth) {
    Measured m;
    m.format = {.width = 64, .height = 48, .fps = {25, 1}, .codec = "h264", .colours = {}};
    TestMeasures test{"s2", "a<b>.mp4", {}};
    for (const auto& psnr : mouth) {
        FrameMeasures frame;
        frame.canvas = {psnr, psnr ? 0.99 : 1.0};
        frame.canvas_rgb_psnr_db = psnr;
        frame.mouth = Likeness{psnr, psnr ? 0.9 : 1.0};
        test.frames.push_back(frame);
    }
    m.tests.push_back(std::move(test));
    return m;
}

TEST(Report, SummarizesAndLeavesOutEqualFrames) {
    const Measured m = measured({std::nullopt, 40.0, 30.0, std::nullopt, 50.0});
    const auto json = to_json(m, "ref.mp4", {.mouth = Box{0, 0, 8, 8}}, "given");
    const auto& summary = json.at("summary");
    EXPECT_EQ(summary.at("canvas_psnr_s2"), 40.0);
    EXPECT_EQ(summary.at("mouth_psnr_s2_worst"), 30.0);
    EXPECT_EQ(summary.at("mouth_psnr_s2_worst_frame"), 2);
    EXPECT_EQ(summary.at("equal_frames_s2"), 2);
    EXPECT_NEAR(summary.at("mouth_ssim_s2"), (1.0 + 1.0 + 0.9 * 3) / 5.0, 1e-12);
    EXPECT_FALSE(summary.contains("eyes_psnr_s2"));
    EXPECT_TRUE(json.at("tests")[0].at("per_frame").at("mouth_psnr")[0].is_null());
    EXPECT_EQ(nlohmann::json::parse(json.dump()), json);
}

TEST(Report, HasNullsWhereAllIsEqual) {
    const auto json = to_json(measured({std::nullopt, std::nullopt}), "ref.mp4", {}, "none");
    EXPECT_TRUE(json.at("summary").at("canvas_psnr_s2").is_null());
    EXPECT_EQ(json.at("summary").at("canvas_ssim_s2"), 1.0);
}

TEST(Report, PageStandsAlone) {
    const Measured m = measured({40.0, 30.0, 35.0});
    const auto json = to_json(m, "ref & co.mp4", {.mouth = Box{0, 0, 8, 8}}, "given");
    const std::string page = to_html(m, json, {}, {});
    EXPECT_THAT(page, HasSubstr("ref &amp; co.mp4"));
    EXPECT_THAT(page, HasSubstr("a&lt;b&gt;.mp4"));
    EXPECT_THAT(page, HasSubstr("<svg"));
    EXPECT_EQ(page.find("http://www.w3.org/2000/svg") == std::string::npos, false);
    EXPECT_EQ(page.find("src=\"http"), std::string::npos);
    EXPECT_EQ(page.find("<script"), std::string::npos);
    EXPECT_EQ(page.find("<link"), std::string::npos);
}

TEST(Measured, WorstFramesStandApart) {
    const Measured m =
        measured({30.0, 31.0, 29.0, 40.0, 41.0, 42.0, 43.0, 35.0, 44.0, 45.0, 46.0, 47.0, 38.0});
    EXPECT_THAT(worst_frames(m, 3), testing::ElementsAre(2, 7, 12));
    EXPECT_THAT(worst_frames(m, 0), testing::IsEmpty());
    EXPECT_THAT(worst_frames(measured({std::nullopt}), 3), testing::IsEmpty());
}

TEST(Plots, DrawGapsAndNothingFromNothing) {
    const Plot plot{
        "t", "dB", {{"s2", {1.0, 2.0, std::nullopt, 3.0}}}, {true, false, true, false}, "keyframe"};
    const std::string svg = to_svg(plot, 25.0);
    EXPECT_THAT(svg, HasSubstr("<polyline"));
    EXPECT_THAT(svg, HasSubstr("<circle"));
    EXPECT_THAT(svg, HasSubstr("keyframe"));
    EXPECT_EQ(to_svg({"t", "", {{"s2", {std::nullopt}}}, {}, ""}, 25.0), "");
    EXPECT_EQ(to_svg({"t", "", {}, {}, ""}, 25.0), "");
}

class TracksTest : public ::testing::Test {
  protected:
    ~TracksTest() override { std::filesystem::remove_all(folder_); }
    std::filesystem::path file(const std::string& name, const std::string& text) {
        std::filesystem::create_directories(folder_);
        std::ofstream(folder_ / name) << text;
        return folder_ / name;
    }
    std::filesystem::path folder_ =
        std::filesystem::temp_directory_path() /
        ("newscaster_tracks_" +
         std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
};

TEST_F(TracksTest, ReadsPlanAndMotion) {
    const auto plan = file("plan.json", R"({"format": "newscaster-cadence", "frames": [
        {"neural": true, "lip_opening": 0.1, "eye_opening": 0.2},
        {"neural": false, "lip_opening": 0.2, "eye_opening": 0.2}]})");
    const auto motion = file("motion.json", R"({"names": ["pitch", "yaw", "roll", "jawOpen"],
        "frames": [[0, 0, 0, 0.5], [0, 1, 0, 0.25]]})");
    const Tracks tracks = read_tracks(plan, motion, 2, 25.0);
    EXPECT_EQ(tracks.keyframes, (std::vector<bool>{true, false}));
    ASSERT_EQ(tracks.plots.size(), 3U);
    EXPECT_EQ(tracks.plots[1].curves[0].values[1], 0.25);
}

TEST_F(TracksTest, RefusesOtherFilesAndLengths) {
    const auto plan = file("plan.json", R"({"format": "newscaster-cadence", "frames": []})");
    EXPECT_THROW(static_cast<void>(read_tracks(plan, "", 2, 25.0)), Error);
    EXPECT_THROW(static_cast<void>(read_tracks(file("x.json", "{"), "", 2, 25.0)), Error);
    EXPECT_THROW(static_cast<void>(read_tracks("", file("y.json", "[1]"), 2, 25.0)), Error);
    EXPECT_THROW(static_cast<void>(read_tracks(
                     file("z.json", R"({"format": "newscaster-cadence", "frames": [{}, {}]})"), "",
                     2, 25.0)),
                 Error);
}

}  // namespace
}  // namespace newscaster::forensics
