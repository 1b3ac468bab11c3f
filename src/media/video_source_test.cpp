#include "media/video_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "media/test_support.h"
#include "newscaster/error.h"

namespace newscaster::media {
namespace {

using testing::ffmpeg;
using ::testing::HasSubstr;
using testing::ScratchFolder;

class VideoSourceTest : public ::testing::Test {
  protected:
    // Ten frames of a solid colour.
    std::string video(const std::string& name, const std::string& colour,
                      const std::string& options) {
        std::string file = scratch_.file(name);
        ffmpeg("-f lavfi -i color=c=" + colour + ":s=66x34:r=25:d=0.4 " + options + " " + file);
        return file;
    }
    ScratchFolder scratch_;
};

void expect_colour(const VideoPicture& picture, int r, int g, int b) {
    const RgbImage image = to_rgb(picture, {10, 10, 12, 12});
    EXPECT_NEAR(image.pixels[0], r, 5);
    EXPECT_NEAR(image.pixels[1], g, 5);
    EXPECT_NEAR(image.pixels[2], b, 5);
}

TEST_F(VideoSourceTest, ReadsEveryFrameInOrder) {
    const auto source = VideoSource::open(video("a.mp4", "white", "-c:v libx264"));
    EXPECT_EQ(source->format().width, 66);
    EXPECT_EQ(source->format().height, 34);
    EXPECT_EQ(source->format().fps, (Rational{25, 1}));
    EXPECT_EQ(source->format().codec, "h264");
    int64_t frames = 0;
    while (const auto picture = source->read()) {
        EXPECT_EQ(picture->index, frames++);
        EXPECT_EQ(picture->y.size(), size_t{66 * 34});
        EXPECT_EQ(picture->u.size(), size_t{33 * 17});
        expect_colour(*picture, 255, 255, 255);
    }
    EXPECT_EQ(frames, 10);
    EXPECT_FALSE(source->read().has_value());
}

TEST_F(VideoSourceTest, KnowsColours) {
    // Small video without tags is BT.601, as ffmpeg makes it; other layouts are converted.
    for (const auto* options :
         {"-c:v libx264 -crf 4", "-c:v libx264 -crf 4 -pix_fmt yuv444p", "-c:v ffv1",
          "-vf scale=out_color_matrix=bt709 -colorspace bt709 -c:v libx264 -crf 4"}) {
        const auto source = VideoSource::open(video("c.mkv", "0xC02040", options));
        const auto picture = source->read();
        ASSERT_TRUE(picture.has_value());
        expect_colour(*picture, 0xC0, 0x20, 0x40);
    }
}

TEST_F(VideoSourceTest, RefusesWhatIsNoVideo) {
    const auto expect_refused = [](const std::string& file, const std::string& reason) {
        try {
            static_cast<void>(VideoSource::open(file));
            FAIL() << file;
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::bad_input);
            EXPECT_THAT(error.what(), HasSubstr(reason));
            EXPECT_THAT(error.what(), HasSubstr(file));
        }
    };
    const std::string sound = scratch_.file("s.wav");
    ffmpeg("-f lavfi -i sine=d=0.2 " + sound);
    expect_refused(sound, "no video");
    const std::string text = scratch_.file("t.mp4");
    std::ofstream(text) << "not a video at all";
    expect_refused(text, "video file");
    EXPECT_THROW(static_cast<void>(VideoSource::open(scratch_.file("missing.mp4"))), Error);
}

TEST_F(VideoSourceTest, StopsAtDamage) {
    const std::string whole = video("w.mkv", "gray", "-c:v ffv1");
    std::ifstream in(whole, std::ios::binary);
    std::string bytes((std::istreambuf_iterator<char>(in)), {});
    for (size_t i = bytes.size() / 2; i < bytes.size() / 2 + 200; ++i) bytes[i] = '\x5a';
    const std::string damaged = scratch_.file("d.mkv");
    std::ofstream(damaged, std::ios::binary) << bytes;
    try {
        const auto source = VideoSource::open(damaged);
        int frames = 0;
        while (source->read()) ++frames;
        EXPECT_LT(frames, 10);  // lost ones must not pass for a whole video
        FAIL() << "read " << frames << " frames of a damaged file";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::bad_input);
    }
}

}  // namespace
}  // namespace newscaster::media
