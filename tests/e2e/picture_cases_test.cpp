// Pictures in: newscaster avatar create (cases P12 to P16, P18 and P30, as far as they are about
// still pictures).
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "e2e/avatar_fixture.h"

namespace newscaster::e2e {
namespace {

// P14: every kind of still picture loads; transparent parts become white.
TEST_F(Pictures, StillFormats) {
    const Pixels original(portrait());
    for (const char* format : {"gray", "rgb48be", "pal8", "ya8"}) {
        const fs::path picture = made(std::string("p14_") + format + ".png",
                                      {"-i", portrait().string(), "-pix_fmt", format});
        expect_created(picture, kPortraitCrop);
        const Pixels canvas(canvas_);
        const int luma_only = format[0] == 'g' || format[0] == 'y' ? 60 : 40;
        EXPECT_LT(mean_difference(canvas, original, {0, 0, 640, 360}), luma_only) << format;
        EXPECT_EQ(canvas.width(), 640);
    }
    for (const char* name : {"p14.webp", "p14.jpg", "p14.bmp", "p14.tiff"}) {
        const fs::path picture = made(name, {"-i", portrait().string()});
        const fs::path misnamed = folder_ / "misnamed.png";
        fs::copy_file(picture, misnamed, fs::copy_options::overwrite_existing);
        expect_created(misnamed, kPortraitCrop);
        EXPECT_LT(mean_difference(Pixels(canvas_), original, {0, 0, 640, 360}), 8.0) << name;
    }
    const std::string transparent_sides(
        "format=rgba,geq=r='r(X,Y)':g='g(X,Y)':b='b(X,Y)':a='255*between(X,200,440)'");
    const fs::path alpha = made(
        "p14_alpha.png", {"-i", portrait().string(), "-vf", transparent_sides, "-frames:v", "1"});
    expect_created(alpha, kPortraitCrop);
    const Pixels canvas(canvas_);
    EXPECT_EQ(canvas.at(10, 10), (std::array<int, 3>{255, 255, 255}));
    EXPECT_EQ(canvas.at(320, 150), original.at(320, 150));
}

// What shows through transparent parts is asked for: a colour or a picture, in the render, too.
TEST_F(Pictures, Background) {
    const fs::path cut_out =
        made("background_alpha.png",
             {"-i", portrait().string(), "-vf",
              "format=rgba,geq=r='r(X,Y)':g='g(X,Y)':b='b(X,Y)':a='255*between(X,200,440)'",
              "-frames:v", "1"});
    expect_created(cut_out, kPortraitCrop, {"--background", "#00b140"});
    const Pixels canvas(canvas_);
    EXPECT_EQ(canvas.at(10, 10), (std::array<int, 3>{0, 0xb1, 0x40}));
    EXPECT_EQ(canvas.at(320, 150), Pixels(portrait()).at(320, 150));
    const fs::path video = render(cut(6400), "green.mp4");
    EXPECT_LE(distance(Pixels(video, 3).at(40, 40), {0, 0xb1, 0x40}), 2);

    const fs::path studio = bars("navy");  // covers 640x360; its bars above and below are cut off
    expect_created(cut_out, kPortraitCrop, {"--background", studio.string()});
    const Pixels over_picture(canvas_);
    for (const int x : {6, 100, 634}) {
        for (const int y : {4, 180, 355}) {
            EXPECT_LE(distance(over_picture.at(x, y), {0, 0, 128}), 1) << x << ',' << y;
        }
    }
}

TEST_F(Pictures, BackgroundRefusals) {
    const std::vector<std::string> green{"--background", "#00b140"};
    expect_refused(portrait(), kPortraitCrop, 2, "all opaque", green);
    expect_refused(portrait(), kPortraitCrop, 2, "#00b14", {"--background", "#00b14"});
    expect_refused(portrait(), kPortraitCrop, 5, "nowhere.png", {"--background", "nowhere.png"});
}

// P13: odd sides are padded by a pixel, never scaled; large pictures are kept.
TEST_F(Pictures, Sizes) {
    const fs::path odd =
        made("p13_odd.png", {"-i", portrait().string(), "-vf", "crop=639:357:0:0"});
    expect_created(odd, kPortraitCrop);
    const Pixels canvas(canvas_);
    const Pixels original(odd);
    ASSERT_EQ(canvas.width(), 640);
    ASSERT_EQ(canvas.height(), 358);
    for (const int y : {0, 100, 356}) {
        for (const int x : {0, 300, 638}) EXPECT_EQ(canvas.at(x, y), original.at(x, y));
        EXPECT_EQ(canvas.at(639, y), original.at(638, y));
    }
    EXPECT_EQ(canvas.at(300, 357), original.at(300, 356));
    const MediaFacts media = probe(render(cut(640), "odd.mp4"));
    EXPECT_EQ(media.video.at("width"), 640);
    EXPECT_EQ(media.video.at("height"), 358);

    const fs::path uhd = made("p13_uhd.png", {"-i", portrait().string(), "-vf", "scale=3840:2160"});
    expect_created(uhd, "1416,318,1002");
    const MediaFacts large = probe(render(cut(640), "uhd.mp4"));
    EXPECT_EQ(large.video.at("width"), 3840);
    EXPECT_EQ(large.video.at("height"), 2160);

    // Smaller when it is asked for; the box round the face as large as it is asked for.
    const auto side = [&](const std::vector<std::string>& more) {
        expect_created(uhd, "", more);
        EXPECT_EQ(Pixels(canvas_).width(), 960);
        const auto json = nlohmann::json::parse(std::ifstream(avatar_ / "avatar.json"));
        const auto map = json.at("source_frames").at(0).at("crop_to_canvas");
        return std::hypot(map[0][0].get<double>(), map[1][0].get<double>()) * 512;
    };
    const double twice = side({"--max-size", "960", "--crop-scale", "2"});
    EXPECT_NEAR(side({"--max-size", "960", "--crop-scale", "3"}), 1.5 * twice, 1.0);
    fs::remove_all(avatar_);
    expect_refused(uhd, "", 2, "1 to 10", {"--crop-scale", "11"});
    expect_refused(uhd, "", 2, "-1 to 1", {"--vy", "2"});
    expect_refused(uhd, kPortraitCrop, 2, "at least 16", {"--max-size", "3"});
}

// P16, as far as a box can say it: a box half outside works, one beside the picture does not, and a
// tiny one is told to be tiny.
TEST_F(Pictures, BoxesAtTheBorderAndTinyOnes) {
    expect_created(portrait(), "-80,60,167");
    const fs::path video = render(cut(640), "border.mp4");
    EXPECT_EQ(probe(video).video.at("width"), 640);
    fs::remove_all(avatar_);
    expect_refused(portrait(), "-90,60,160", 2, "centre is on the picture of 640x360");
    expect_refused(portrait(), "10,10,8", 2, "16 to 32768");
    const RunResult tiny = create(portrait(), "300,100,40");
    EXPECT_EQ(tiny.exit_code, 0) << tiny.err;
    EXPECT_NE(tiny.err.find("40 pixels wide"), std::string::npos) << tiny.err;
}

// The face is found: the same avatar, nearly, as with the box of the bundled one.
TEST_F(Pictures, TheFaceIsFound) {
    expect_created(portrait(), "", {"-v"});
    const auto json = nlohmann::json::parse(std::ifstream(avatar_ / "avatar.json"));
    const auto map = json.at("source_frames").at(0).at("crop_to_canvas");
    const double centre_x =
        map[0][0].get<double>() * 256 + map[0][1].get<double>() * 256 + map[0][2].get<double>();
    const double centre_y =
        map[1][0].get<double>() * 256 + map[1][1].get<double>() * 256 + map[1][2].get<double>();
    EXPECT_NEAR(centre_x, 320, 6);
    EXPECT_NEAR(centre_y, 137, 6);
    EXPECT_NEAR(std::hypot(map[0][0].get<double>(), map[1][0].get<double>()) * 512, 167, 12);
    const fs::path video = render(cut(6400), "found.mp4");
    EXPECT_LT(mean_difference(Pixels(video, 0), Pixels(portrait()), {280, 90, 360, 200}), 25.0);
}

// P15: of two faces the largest is taken, or the one that is asked for; the other stays untouched.
TEST_F(Pictures, TwoFaces) {
    const std::string avatars = std::string(NEWSCASTER_SOURCE_DIR) + "/avatars/";
    const std::string side_by_side(
        "[0]crop=720:720:600:100,scale=480:480[l];[1]crop=720:720:600:100,scale=320:320,"
        "pad=480:480:80:80:0x4a6a8a[r];[l][r]hstack");
    const fs::path two =
        made("p15_two.png", {"-i", avatars + "anna/canvas.png", "-i", avatars + "marcus/canvas.png",
                             "-filter_complex", side_by_side, "-frames:v", "1"});
    const auto centre_x = [&] {
        const auto json = nlohmann::json::parse(std::ifstream(avatar_ / "avatar.json"));
        const auto map = json.at("source_frames").at(0).at("crop_to_canvas");
        return map[0][0].get<double>() * 256 + map[0][1].get<double>() * 256 +
               map[0][2].get<double>();
    };
    expect_created(two, "");
    EXPECT_NEAR(centre_x(), 240, 15);
    const fs::path video = render(cut(640), "two.mp4");
    EXPECT_LT(mean_difference(Pixels(video), Pixels(two), {560, 80, 880, 400}), 2.0);
    for (const char* right : {"2", "700,300"}) {
        expect_created(two, "", {"--face", right});
        EXPECT_NEAR(centre_x(), 720, 15) << right;
    }
    fs::remove_all(avatar_);
    expect_refused(two, "", 2, "wanted 1 to 2", {"--face", "3"});
    expect_refused(two, "", 2, "largest, center", {"--face", "left"});
}

// P16: a face that fills the picture and one cut by its border are found; no face is said so before
// any heavy work.
TEST_F(Pictures, DifficultFaces) {
    const std::string anna = std::string(NEWSCASTER_SOURCE_DIR) + "/avatars/anna/canvas.png";
    expect_created(made("p16_fills.png", {"-i", anna, "-vf", "crop=240:320:840:210,scale=960:1280",
                                          "-frames:v", "1"}),
                   "");
    expect_created(made("p16_half_out.png", {"-i", anna, "-vf", "crop=1000:1080:0:0"}), "");
    fs::remove_all(avatar_);
    expect_refused(made("p16_less.png", {"-i", anna, "-vf", "crop=960:1080:0:0"}), "", 2,
                   "cut in half");
    const fs::path small =
        made("p16_small.png", {"-i", anna, "-vf", "scale=480:270,pad=1920:1080:1420:790:0x4a6a8a"});
    const RunResult warned = create(small, "");
    EXPECT_EQ(warned.exit_code, 0) << warned.err;
    EXPECT_NE(warned.err.find("will be blurred"), std::string::npos) << warned.err;
    fs::remove_all(avatar_);
    const fs::path none =
        made("p16_noface.png", {"-f", "lavfi", "-i", "testsrc2=s=640x480", "-frames:v", "1"});
    expect_refused(none, "", 2, "no face was found");
    const fs::path speck =
        made("p16_tiny.png", {"-i", anna, "-vf", "scale=160:90,pad=1920:1080:1740:970:0x4a6a8a"});
    const RunResult result = create(speck, "");
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_NE(result.err.find("no face was found"), std::string::npos) << result.err;
}

// P12 and P18 for what counts as a photo: EXIF turns it, and a video of one frame is one.
TEST_F(Pictures, PhotosFromPhones) {
    const fs::path jpeg = made("upright.jpg", {"-i", portrait().string(), "-q:v", "2"});
    std::ifstream stream(jpeg, std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(stream), {}};
    const std::string tiff("MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0",
                           26);
    const std::string body = std::string("Exif\0\0", 6) + tiff;
    bytes.insert(2, std::string("\xff\xe1\0", 3) + static_cast<char>(body.size() + 2) + body);
    const fs::path phone = folder_ / "phone.jpg";
    std::ofstream(phone, std::ios::binary) << bytes;
    expect_created(phone, "100,200,160");
    const Pixels canvas(canvas_);
    EXPECT_EQ(canvas.width(), 360);
    EXPECT_EQ(canvas.height(), 640);
    // Orientation 6: the stored left edge is on top.
    EXPECT_LE(distance(canvas.at(359 - 20, 30), Pixels(jpeg).at(30, 20)), 3);

    const fs::path one = made("p18_1frame.mp4", {"-i", portrait().string(), "-frames:v", "1"});
    expect_created(one, kPortraitCrop);
    EXPECT_EQ(probe(render(cut(640), "one.mp4")).video_frames, 1);
}

TEST_F(Pictures, Refusals) {
    const auto file = [&](const std::string& name, const std::string& bytes) {
        fs::path path = folder_ / name;
        std::ofstream(path, std::ios::binary) << bytes;
        return path;
    };
    std::ifstream stream(portrait(), std::ios::binary);
    const std::string png{std::istreambuf_iterator<char>(stream), {}};
    std::string huge = png;  // 30000 x 30000, says the header
    for (const size_t i : {16, 20}) huge.replace(i, 4, std::string("\0\0\x75\x30", 4));
    std::string large = png;  // 10000 x 10000
    for (const size_t i : {16, 20}) large.replace(i, 4, std::string("\0\0\x27\x10", 4));

    expect_refused(file("a.jpg", "words\n"), kPortraitCrop, 2, "a.jpg: is not a picture");
    expect_refused(file("b.jpg", ""), kPortraitCrop, 2, "b.jpg");
    expect_refused(file("c.png", huge), kPortraitCrop, 2, "too large");
    expect_refused(file("d.png", large), kPortraitCrop, 2, "10000x10000");
    expect_refused(file("e.png", png.substr(0, png.size() / 2)), kPortraitCrop, 2, "cut");
    expect_refused(speech(), kPortraitCrop, 2, "holds no picture");
    expect_refused(folder_ / "none.png", kPortraitCrop, 5, "none.png");
    expect_refused(folder_, kPortraitCrop, 5, "is a folder");
    for (const char* box : {"1,2", "1,2,x", "1,2,3,4,5", ",", "1,,3", "1,2,300,", " 1,2,300"}) {
        expect_refused(portrait(), box, 2, "--crop");
    }
    expect_refused(portrait(), "nan,0,100", 2, "finite");
    expect_refused(portrait(), kPortraitCrop, 2, "--eye-open", {"--eye-open", "1"});
    expect_refused(portrait(), kPortraitCrop, 2, "eye opening", {"--eye-open", "1,1e9"});
    expect_refused(portrait(), kPortraitCrop, 3, "nobody", {"--pack", "nobody"});
    expect_refused(portrait(), kPortraitCrop, 4, "abacus", {"--provider", "abacus"});
}

TEST_F(Pictures, WhatIsThereStaysThere) {
    fs::create_directories(avatar_);
    std::ofstream(avatar_ / "thesis.txt") << "words";
    for (const std::vector<std::string>& more :
         std::vector<std::vector<std::string>>{{}, {"--force"}}) {
        const RunResult result = create(portrait(), kPortraitCrop, more);
        EXPECT_EQ(result.exit_code, 5) << result.err;
        EXPECT_TRUE(fs::exists(avatar_ / "thesis.txt"));
    }
    EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);  // no temporary left
}

TEST_F(Pictures, SamePictureSameBytes) {
    const auto tensors = [&] {
        std::ifstream stream(avatar_ / "tensors.safetensors", std::ios::binary);
        return std::string{std::istreambuf_iterator<char>(stream), {}};
    };
    expect_created(portrait(), kPortraitCrop);
    const std::string first = tensors();
    expect_created(portrait(), kPortraitCrop);
    EXPECT_FALSE(first.empty());
    EXPECT_EQ(tensors(), first);
    expect_created(portrait(), "230,53,167");
    EXPECT_NE(tensors(), first);
}

}  // namespace
}  // namespace newscaster::e2e
