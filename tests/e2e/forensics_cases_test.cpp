// newscaster forensics through the program: strides against the dense render, and bad input.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "e2e/inputs.h"
#include "e2e/program.h"

namespace newscaster::e2e {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::HasSubstr;

constexpr int64_t kSamples = 16000;  // 25 frames

std::string text_of(const fs::path& file) {
    std::ifstream stream(file, std::ios::binary);
    std::ostringstream text;
    text << stream.rdbuf();
    return text.str();
}

class Forensics : public ::testing::Test {
  protected:
    fs::path render(const std::string& name, std::vector<std::string> options,
                    int64_t samples = kSamples) {
        fs::path file = folder_ / name;
        options.insert(options.begin(),
                       {"render", cut(samples).string(), "-o", file.string(), "--crf", "10"});
        const auto result = newscaster(options);
        EXPECT_EQ(result.exit_code, 0) << result.err;
        return file;
    }

    void expect_refused(const std::vector<fs::path>& videos, std::vector<std::string> options,
                        const std::string& reason) {
        const fs::path report = folder_ / "refused";
        std::vector<std::string> arguments{"forensics"};
        for (const auto& video : videos) arguments.push_back(video.string());
        arguments.insert(arguments.end(), {"-o", report.string()});
        arguments.insert(arguments.end(), options.begin(), options.end());
        const auto before = std::distance(fs::directory_iterator(folder_), {});
        const auto result = newscaster(arguments);
        EXPECT_EQ(result.exit_code, 2) << reason << ": " << result.err;
        EXPECT_THAT(result.err, HasSubstr(reason));
        EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
        EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), before) << reason;
    }

    const fs::path folder_ = scratch();
};

TEST_F(Forensics, StridesAgainstTheDenseRender) {
    const auto dense = render("s1.mp4", {"--export-motion", (folder_ / "m.json").string()});
    const auto stride2 =
        render("s2.mp4", {"--stride", "2", "--cadence-plan", (folder_ / "plan.json").string()});
    const auto stride3 = render("s3.mp4", {"--stride", "3"});
    const fs::path report = folder_ / "report";
    const auto result = newscaster({"forensics", dense.string(), stride2.string(), stride3.string(),
                                    "-o", report.string(), "-a", "anna", "--frames", "4", "--worst",
                                    "1", "--cadence-plan", (folder_ / "plan.json").string(),
                                    "--motion", (folder_ / "m.json").string(), "--json"});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const json summary = json::parse(result.out);
    EXPECT_GT(summary.at("canvas_psnr_s2"), 45.0);
    EXPECT_GT(summary.at("canvas_ssim_s2"), 0.99);
    EXPECT_GT(summary.at("mouth_psnr_s2"), 30.0);
    EXPECT_GT(summary.at("eyes_psnr_s3"), 30.0);
    EXPECT_LT(summary.at("seam_de2000_s2"), 2.0);
    EXPECT_LT(summary.at("chroma_phase_x_s2"), 0.2);

    const json metrics = json::parse(text_of(report / "metrics.json"));
    EXPECT_EQ(metrics.at("frames"), 25);
    EXPECT_EQ(metrics.at("summary"), summary);
    EXPECT_EQ(metrics.at("tests").at(1).at("per_frame").at("mouth_psnr").size(), 25U);
    EXPECT_THAT(metrics.at("regions").at("origin").get<std::string>(), HasSubstr("anna"));
    EXPECT_TRUE(fs::exists(report / "frame_000004_face.png"));
    EXPECT_TRUE(fs::exists(report / "frame_000004_mouth.png"));
    const std::string page = text_of(report / "report.html");
    EXPECT_THAT(page, HasSubstr("data:image/png;base64,"));
    EXPECT_THAT(page, HasSubstr("Jerk of the head"));
    EXPECT_THAT(page, HasSubstr("keyframe"));

    // A report that is there stays, unless told otherwise.
    std::vector<std::string> again{"forensics",     dense.string(), stride2.string(), "-o",
                                   report.string(), "--mouth",      "900,500,80,60",  "-q"};
    EXPECT_NE(newscaster(again).exit_code, 0);
    EXPECT_EQ(text_of(report / "report.html"), page);
    again.emplace_back("--force");
    EXPECT_EQ(newscaster(again).exit_code, 0);
    EXPECT_NE(text_of(report / "report.html"), page);
}

TEST_F(Forensics, EqualVideosHaveNoPsnr) {
    const auto dense = render("s1.mp4", {}, 4000);
    const auto result = newscaster({"forensics", dense.string(), dense.string(), "-o",
                                    (folder_ / "same").string(), "--mouth", "0,0,64,64", "--json"});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const json summary = json::parse(result.out);
    EXPECT_TRUE(summary.at("canvas_psnr_s2").is_null());
    EXPECT_EQ(summary.at("canvas_ssim_s2"), 1.0);
    EXPECT_EQ(summary.at("equal_frames_s2"), 7);
}

TEST_F(Forensics, RefusesVideosThatDoNotFit) {
    const fs::path dense = made("f25.mp4", {"-f", "lavfi", "-i", "testsrc=s=320x180:r=25:d=0.4"});
    const fs::path shorter = made("f9.mp4", {"-f", "lavfi", "-i", "testsrc=s=320x180:r=25:d=0.36"});
    const fs::path larger =
        made("large.mp4", {"-f", "lavfi", "-i", "testsrc=s=322x180:r=25:d=0.4"});
    const fs::path faster = made("fast.mp4", {"-f", "lavfi", "-i", "testsrc=s=320x180:r=30:d=0.4"});
    const fs::path broken = folder_ / "broken.mp4";
    std::ofstream(broken) << "these are not the frames";
    const std::vector<std::string> regions{"--mouth", "0,0,64,64"};
    expect_refused({dense, shorter}, regions, "only 9 frames");
    expect_refused({shorter, dense}, regions, "more than 9 frames");
    expect_refused({dense, larger}, regions, "322x180");
    expect_refused({dense, faster}, regions, "30/1");
    expect_refused({dense, broken}, regions, "broken.mp4");
    expect_refused({dense, cut(4000)}, regions, "no video");
    expect_refused({dense, dense}, {"--mouth", "0,0,64"}, "--mouth");
    expect_refused({dense, dense}, {"--mouth", "300,0,64,64"}, "320x180");
    expect_refused({dense, dense}, {"--mouth", "0,0,64,64", "--frames", "10"}, "found 10");
    expect_refused({dense, dense, dense}, {"--mouth", "0,0,64,64", "--names", "a,a"}, "names");
}

TEST_F(Forensics, WithoutAFaceTheCanvasAloneIsMeasured) {
    const fs::path plain =
        made("noface.mp4", {"-f", "lavfi", "-i", "testsrc=s=320x180:r=25:d=0.2"});
    const fs::path report = folder_ / "report";
    const auto result =
        newscaster({"forensics", plain.string(), plain.string(), "-o", report.string()});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const json metrics = json::parse(text_of(report / "metrics.json"));
    EXPECT_TRUE(metrics.at("regions").at("mouth").is_null());
    EXPECT_THAT(result.err, HasSubstr("none"));
}

}  // namespace
}  // namespace newscaster::e2e
