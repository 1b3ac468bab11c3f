#include "media/backdrop.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "media/clip_source.h"
#include "media/frame_to_rgb.h"
#include "media/image.h"
#include "media/test_support.h"
#include "newscaster/error.h"

namespace newscaster::media {
namespace {

using testing::ffmpeg;
using testing::ScratchFolder;

// Every pixel tells where it is.
RgbImage gradient(int width, int height) {
    RgbImage image{width, height, {}};
    for (int y = 0; y < height; ++y) {
        for (int x = 0; x < width; ++x) {
            image.pixels.push_back(static_cast<uint8_t>(x * 4));
            image.pixels.push_back(static_cast<uint8_t>(y * 4));
            image.pixels.push_back(77);
        }
    }
    return image;
}

TEST(Backdrop, ColoursAreSixHexadecimalDigits) {
    const RgbImage green = Backdrop::of("#00B140").covering(3, 2);
    ASSERT_EQ(green.pixels.size(), 18U);
    for (size_t i = 0; i < green.pixels.size(); i += 3) {
        EXPECT_EQ(green.pixels[i], 0);
        EXPECT_EQ(green.pixels[i + 1], 0xb1);
        EXPECT_EQ(green.pixels[i + 2], 0x40);
    }
    for (const char* bad : {"#", "#12345", "#1234567", "#12345g", "# 12345", "#-12345"}) {
        EXPECT_THROW((void)Backdrop::of(bad), Error) << bad;
    }
    EXPECT_THROW((void)Backdrop::of("no such file"), Error);
    EXPECT_FALSE(Backdrop().wanted());
    EXPECT_TRUE(std::ranges::all_of(Backdrop().covering(4, 4).pixels,
                                    [](uint8_t value) { return value == 255; }));
}

TEST(Backdrop, PicturesCoverAndAreCutOnBothSides) {
    const ScratchFolder scratch;
    write_png(scratch.file("b.png"), gradient(40, 20));
    const Backdrop backdrop = Backdrop::of(scratch.file("b.png"));
    EXPECT_EQ(backdrop.covering(40, 20).pixels, gradient(40, 20).pixels);
    // A square out of the middle: columns 10 to 29.
    const RgbImage square = backdrop.covering(20, 20);
    EXPECT_NEAR(square.pixels[0], 10 * 4, 1);
    EXPECT_NEAR(square.pixels[3 * 19], 29 * 4, 1);
    // Twice as large: still those columns.
    const RgbImage large = backdrop.covering(40, 40);
    EXPECT_NEAR(large.pixels[3 * 20], 20 * 4, 3);
    EXPECT_NEAR(large.pixels[3 * (20 * 40) + 1], 10 * 4, 3);
    const RgbImage flat = backdrop.covering(40, 4);
    EXPECT_NEAR(flat.pixels[1], 8 * 4, 1);
}

// However a frame lies, the backdrop stands upright behind it.
TEST(Backdrop, StandsUprightBehindTurnedFrames) {
    const ScratchFolder scratch;
    write_png(scratch.file("b.png"), gradient(12, 12));
    const Backdrop backdrop = Backdrop::of(scratch.file("b.png"));
    for (int orientation = 1; orientation <= 8; ++orientation) {
        const AvFramePtr frame = make_frame();
        frame->format = AV_PIX_FMT_RGBA;
        frame->width = 12;
        frame->height = 8;
        ASSERT_GE(av_frame_get_buffer(frame.get(), 0), 0);
        for (int y = 0; y < frame->height; ++y) {
            std::fill_n(frame->data[0] + static_cast<ptrdiff_t>(y) * frame->linesize[0], 4 * 12, 0);
        }
        RgbConverter converter(backdrop, orientation);
        const RgbImage upright =
            make_upright(converter.convert(*frame, 12, 8, SWS_CS_ITU709, "frame"), orientation);
        const RgbImage wanted =
            orientation >= 5 ? backdrop.covering(8, 12) : backdrop.covering(12, 8);
        EXPECT_EQ(upright.pixels, wanted.pixels) << orientation;
    }
}

// Clips with transparency: ProRes 4444, and WebM, whose alpha only libvpx reads.
TEST(Backdrop, ShowsThroughClips) {
    const ScratchFolder scratch;
    const std::string left_half_clear =
        "-f lavfi -i color=c=red:s=64x48:r=25:d=0.2 -vf "
        "\"format=yuva444p,geq=lum='lum(X,Y)':cb='cb(X,Y)':cr='cr(X,Y)':"
        "a='if(lt(X,32),0,255)'\" ";
    ffmpeg(left_half_clear + "-c:v prores_ks -pix_fmt yuva444p10le " + scratch.file("a.mov"));
    ffmpeg(left_half_clear + "-c:v libvpx-vp9 -crf 4 -b:v 0 -pix_fmt yuva420p " +
           scratch.file("a.webm"));
    for (const char* name : {"a.mov", "a.webm"}) {
        const auto clip =
            ClipSource::open(scratch.file(name), {25, 1}, {}, Backdrop::of("#00b140"));
        int frames = 0;
        while (const auto picture = clip->read()) {
            const size_t left = 3 * (24 * 64 + 8);
            EXPECT_NEAR(picture->pixels[left], 0, 3) << name;
            EXPECT_NEAR(picture->pixels[left + 1], 0xb1, 3) << name;
            const size_t right = 3 * (24 * 64 + 56);
            EXPECT_GT(picture->pixels[right], 230) << name;
            EXPECT_LT(picture->pixels[right + 1], 40) << name;
            ++frames;
        }
        EXPECT_EQ(frames, 5) << name;
    }
    ffmpeg("-f lavfi -i color=c=red:s=64x48:r=25:d=0.2 " + scratch.file("opaque.mp4"));
    const auto opaque =
        ClipSource::open(scratch.file("opaque.mp4"), {25, 1}, {}, Backdrop::of("#00b140"));
    EXPECT_THROW((void)opaque->read(), Error);
}

}  // namespace
}  // namespace newscaster::media
