// Strides through the program: quality against stride 1, the plan, repeatability.
#include <gtest/gtest.h>

#include <algorithm>
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

constexpr size_t kLumaBytes = size_t{1920} * 1080;
constexpr size_t kFrameBytes = kLumaBytes * 3 / 2;
constexpr int64_t kSamples = 16000;  // 25 frames

std::string bytes_of(const fs::path& file) {
    std::ifstream stream(file, std::ios::binary);
    std::ostringstream text;
    text << stream.rdbuf();
    return text.str();
}

struct Drawn {
    std::string video;  // NV12
    json plan;
    json report;
};

Drawn draw(const std::string& name, const std::vector<std::string>& options) {
    const fs::path folder = scratch();
    const auto file = [&](const char* extension) { return (folder / (name + extension)).string(); };
    std::vector<std::string> arguments{"render",      cut(kSamples).string(), "-o",
                                       file(".nv12"), "--cadence-plan",       file(".json"),
                                       "--report",    file(".report.json"),   "--precision",
                                       "f32"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    const auto result = newscaster(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_NE(bytes_of(file(".svg")).find("</svg>"), std::string::npos);
    return {bytes_of(file(".nv12")), json::parse(bytes_of(file(".json"))),
            json::parse(bytes_of(file(".report.json")))};
}

double luma_psnr(const std::string& a, const std::string& b, size_t frame) {
    double sum = 0.0;
    for (size_t i = frame * kFrameBytes; i < frame * kFrameBytes + kLumaBytes; ++i) {
        const double d = static_cast<double>(static_cast<unsigned char>(a[i])) -
                         static_cast<double>(static_cast<unsigned char>(b[i]));
        sum += d * d;
    }
    return 10.0 * std::log10(255.0 * 255.0 * static_cast<double>(kLumaBytes) / std::max(sum, 1.0));
}

TEST(Cadence, StridesStayCloseToDrawingEveryFrame) {
    const Drawn dense = draw("dense", {});
    ASSERT_EQ(dense.video.size(), 25 * kFrameBytes);
    EXPECT_EQ(dense.report.at("in_between_frames"), 0);
    EXPECT_EQ(dense.plan.at("neural_frames"), 25);
    struct Case {
        std::string stride;
        std::string mode;
        double floor_db;
    };
    for (const auto& [stride, mode, floor_db] :
         {Case{"2", "warp", 50.0}, Case{"3", "warp", 48.0}, Case{"0", "warp", 50.0},
          Case{"3", "frame", 42.0}}) {
        std::string name = "stride" + stride;
        name += mode;
        const Drawn drawn = draw(name, {"--stride", stride, "--stride-mode", mode});
        ASSERT_EQ(drawn.video.size(), dense.video.size());
        const auto& frames = drawn.plan.at("frames");
        ASSERT_EQ(frames.size(), 25U);
        int between = 0;
        for (size_t i = 0; i < frames.size(); ++i) {
            EXPECT_EQ(frames[i].at("index"), i);
            if (frames[i].at("neural").get<bool>()) {
                EXPECT_EQ(drawn.video.compare(i * kFrameBytes, kFrameBytes, dense.video,
                                              i * kFrameBytes, kFrameBytes),
                          0)
                    << name << ", keyframe " << i;
            } else {
                ++between;
                EXPECT_GE(luma_psnr(drawn.video, dense.video, i), floor_db) << name << ", " << i;
            }
        }
        EXPECT_GE(between, 8) << name;
        EXPECT_EQ(drawn.report.at("in_between_frames"), between);
        EXPECT_EQ(drawn.report.at("neural_frames"), 25 - between);
        EXPECT_EQ(drawn.report.at("stride_mode"), mode);
    }
}

TEST(Cadence, SameBytesFromAnyNumberOfWorkers) {
    const Drawn one = draw("one", {"--stride", "0", "--batch-size", "1", "--threads", "1"});
    const Drawn three = draw("three", {"--stride", "0", "--batch-size", "3", "--threads", "1"});
    EXPECT_EQ(one.video, three.video);
    EXPECT_EQ(one.plan, three.plan);
}

TEST(Cadence, NoPlanIsLeftBehindByAFailedRender) {
    const fs::path folder = scratch();
    const auto result =
        newscaster({"render", "missing.wav", "-o", (folder / "out.mp4").string(), "--stride", "2",
                    "--cadence-plan", (folder / "plan.json").string()});
    EXPECT_NE(result.exit_code, 0);
    EXPECT_TRUE(fs::is_empty(folder));
}

}  // namespace
}  // namespace newscaster::e2e
