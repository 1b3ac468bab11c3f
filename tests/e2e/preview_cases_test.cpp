// A look at an avatar before it is used: newscaster avatar preview and avatar create --preview.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "e2e/avatar_fixture.h"

namespace newscaster::e2e {
namespace {

using Rgb = std::array<int, 3>;

// Pixels that are nearly of a colour, within a box.
int count(const Pixels& picture, const Square& box, const Rgb& colour) {
    int found = 0;
    for (int y = box.y0; y < box.y1; ++y) {
        for (int x = box.x0; x < box.x1; ++x) {
            if (distance(picture.at(x, y), colour) < 40) ++found;
        }
    }
    return found;
}

constexpr Rgb kGreen{64, 255, 96};
constexpr Rgb kMagenta{255, 64, 255};
constexpr Rgb kYellow{255, 208, 0};

void expect_three_seconds(const fs::path& video, int width) {
    const MediaFacts facts = probe(video);
    EXPECT_EQ(facts.video.at("width").get<int>(), width);
    EXPECT_EQ(facts.video_frames, 75);
    EXPECT_NEAR(facts.video_s, 3.0, 0.001);
    EXPECT_NEAR(facts.audio_s, 3.0, 0.1);
}

// The picture shows what is redrawn, the face's points on the face, and darkens the rest.
TEST_F(Pictures, PreviewOfANewAvatar) {
    expect_created(portrait(), "", {"--preview"});
    const Pixels drawn(avatar_ / "preview.png");
    const Pixels canvas(canvas_);
    ASSERT_EQ(drawn.width(), canvas.width());
    ASSERT_EQ(drawn.height(), canvas.height());
    for (const int x : {4, 630}) {
        for (const int y : {4, 350}) {
            for (size_t c = 0; c < 3; ++c) {
                EXPECT_NEAR(drawn.at(x, y).at(c), 0.4 * canvas.at(x, y).at(c), 1.0)
                    << x << ',' << y;
            }
        }
    }
    // Hair over the forehead has no points and is the picture's own.
    EXPECT_EQ(drawn.at(320, 78), canvas.at(320, 78));
    const Square mouth{305, 150, 335, 172};
    const Square whole{0, 0, 640, 360};
    EXPECT_GT(count(drawn, mouth, kGreen), 50);
    EXPECT_EQ(count(drawn, whole, kMagenta), 0);
    EXPECT_GT(count(drawn, whole, kYellow), 300);
    expect_three_seconds(avatar_ / "preview.mp4", 640);

    // An avatar with a preview in it is an avatar still.
    const RunResult info = newscaster({"avatar", "info", avatar_.string()});
    EXPECT_EQ(info.exit_code, 0) << info.err;
    expect_created(portrait(), kPortraitCrop);
    EXPECT_FALSE(fs::exists(avatar_ / "preview.png"));
}

// Where no face is found, the pack's keypoints are drawn; the sample speaks what it is given.
TEST_F(Pictures, PreviewWithoutAFace) {
    expect_created(bars("gray"), "32,0,256");
    const std::string prefix = (folder_ / "look").string();
    const RunResult result = newscaster({"avatar", "preview", avatar_.string(), "-o", prefix,
                                         "--audio", cut(19200).string(), "--json"});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const auto json = nlohmann::json::parse(result.out);
    EXPECT_EQ(json.at("picture"), prefix + ".png");
    EXPECT_EQ(json.at("video"), prefix + ".mp4");
    EXPECT_FALSE(json.at("landmarks").get<bool>());
    EXPECT_EQ(json.at("frames").get<int>(), 30);
    const Pixels drawn(prefix + ".png");
    EXPECT_GT(count(drawn, {32, 0, 288, 256}, kMagenta), 48);
    EXPECT_EQ(count(drawn, {0, 0, 320, 256}, kGreen), 0);
}

// A folder as the place, and a bundled name.
TEST_F(Pictures, PreviewInAFolder) {
    const RunResult result =
        newscaster({"avatar", "preview", "marcus", "-o", folder_.string(), "-q"});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_TRUE(result.out.empty()) << result.out;
    EXPECT_TRUE(fs::exists(folder_ / "marcus-preview.png"));
    expect_three_seconds(folder_ / "marcus-preview.mp4", 1920);
}

TEST_F(Pictures, PreviewRefusals) {
    const std::string prefix = (folder_ / "look").string();
    const auto refused = [&](const std::vector<std::string>& arguments, int exit_code,
                             const std::string& says) {
        const RunResult result = newscaster(arguments);
        EXPECT_EQ(result.exit_code, exit_code) << result.err;
        EXPECT_NE(result.err.find(says), std::string::npos) << result.err;
        EXPECT_LT(result.cpu_s, 1.0 * kSlowdown);
        EXPECT_FALSE(fs::exists(prefix + ".png"));
        EXPECT_FALSE(fs::exists(prefix + ".mp4"));
    };
    refused({"avatar", "preview", "nobody", "-o", prefix}, 3, "nobody");
    refused({"avatar", "preview", "anna", "-o", prefix, "--audio", "none.wav"}, 5, "none.wav");
    refused({"avatar", "preview", "anna", "-o", prefix, "--detectors", folder_.string()}, 5,
            "face_detection");
    expect_refused(portrait(), kPortraitCrop, 2, "--preview", {"--preview", "--json"});
}

}  // namespace
}  // namespace newscaster::e2e
