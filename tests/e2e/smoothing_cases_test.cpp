// Smoother head motion through the program: what changes, what does not, and the numbers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "e2e/inputs.h"
#include "e2e/program.h"

namespace newscaster::e2e {
namespace {

using nlohmann::json;

constexpr int64_t kSamples = 24000;  // 38 frames

struct Rendered {
    json motion;
    json report;
};

Rendered render(const std::vector<std::string>& options) {
    const auto folder = scratch();
    const auto file = [&](const char* name) { return (folder / name).string(); };
    std::vector<std::string> arguments{"render",       cut(kSamples).string(), "-o",
                                       file("v.nv12"), "--export-motion",      file("m.json"),
                                       "--report",     file("r.json"),         "--precision",
                                       "f32"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    const auto result = newscaster(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    std::ifstream motion(file("m.json"));
    std::ifstream report(file("r.json"));
    return {json::parse(motion), json::parse(report)};
}

bool is_pose(const std::string& name) {
    return name == "pitch" || name == "yaw" || name == "roll" || name.starts_with("translation");
}

TEST(SmoothPose, ChangesThePoseAndNothingElse) {
    const Rendered plain = render({});
    const Rendered smooth = render({"--smooth-pose"});
    const auto& names = plain.motion.at("names");
    const auto& before = plain.motion.at("frames");
    const auto& after = smooth.motion.at("frames");
    ASSERT_EQ(before.size(), 38U);
    ASSERT_EQ(after.size(), before.size());
    size_t moved = 0;
    for (size_t frame = 0; frame < before.size(); ++frame) {
        for (size_t i = 0; i < names.size(); ++i) {
            const double a = before[frame].at(i);
            const double b = after[frame].at(i);
            if (!is_pose(names[i])) {
                EXPECT_EQ(a, b) << names[i] << " of frame " << frame;
            } else if (a != b) {
                ++moved;
            }
        }
    }
    EXPECT_GT(moved, before.size());

    const json& given = smooth.report.at("pose").at("given");
    const json& drawn = smooth.report.at("pose").at("drawn");
    EXPECT_EQ(given, plain.report.at("pose").at("drawn"));
    EXPECT_LT(drawn.at("mean_jerk_rad_s3"), given.at("mean_jerk_rad_s3"));
    EXPECT_GT(drawn.at("peak_jerk_rad_s3"), 0.0);  // so short a track peaks at its ends
}

TEST(SmoothPose, BoundsTheAngularAcceleration) {
    const Rendered plain = render({});
    const double peak = plain.report.at("pose").at("drawn").at("peak_acceleration_rad_s2");
    const double bound = peak / 2.0;
    const Rendered bounded = render({"--max-angular-acceleration", std::to_string(bound)});
    const double found = bounded.report.at("pose").at("drawn").at("peak_acceleration_rad_s2");
    EXPECT_LE(found, bound * 1.001);
    EXPECT_GT(found, bound * 0.9);
    EXPECT_EQ(bounded.motion.at("frames").size(), plain.motion.at("frames").size());
}

// The same filter whatever the frames are drawn by.
TEST(SmoothPose, WorksWithStrides) {
    const Rendered dense = render({"--smooth-pose"});
    const Rendered strided = render({"--smooth-pose", "--stride", "0"});
    EXPECT_EQ(dense.motion, strided.motion);
    EXPECT_EQ(dense.report.at("pose"), strided.report.at("pose"));
    EXPECT_GT(strided.report.at("in_between_frames"), 0);
}

}  // namespace
}  // namespace newscaster::e2e
