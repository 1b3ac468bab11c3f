#include "media/image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <string_view>

#include "core/file.h"
#include "media/test_support.h"
#include "newscaster/error.h"

namespace newscaster::media {
namespace {

using testing::ffmpeg;
using ::testing::HasSubstr;
using testing::ScratchFolder;

// Four solid quarters of saturated colour, 64x32.
RgbImage quarters() {
    RgbImage image{64, 32, {}};
    for (int y = 0; y < 32; ++y) {
        for (int x = 0; x < 64; ++x) {
            const bool right = x >= 32;
            const bool low = y >= 16;
            image.pixels.push_back(!low && !right ? 255 : 10);
            image.pixels.push_back(!low && right ? 255 : 20);
            image.pixels.push_back(low && !right ? 255 : 30);
        }
    }
    return image;
}

void expect_pixel(const RgbImage& image, int x, int y, std::array<int, 3> wanted, int tolerance) {
    for (size_t c = 0; c < 3; ++c) {
        const size_t at = 3 * (static_cast<size_t>(y) * static_cast<size_t>(image.width) +
                               static_cast<size_t>(x)) +
                          c;
        EXPECT_NEAR(image.pixels.at(at), wanted[c], tolerance) << x << "," << y << " " << c;
    }
}

void expect_quarters(const RgbImage& image, int tolerance) {
    ASSERT_EQ(image.width, 64);
    ASSERT_EQ(image.height, 32);
    expect_pixel(image, 8, 8, {255, 20, 30}, tolerance);
    expect_pixel(image, 56, 8, {10, 255, 30}, tolerance);
    expect_pixel(image, 8, 24, {10, 20, 255}, tolerance);
    expect_pixel(image, 56, 24, {10, 20, 30}, tolerance);
}

TEST(Shrink, KeepsTheShapeAndTheMean) {
    const RgbImage small = shrink(quarters(), 16);
    ASSERT_EQ(small.width, 16);
    ASSERT_EQ(small.height, 8);
    expect_pixel(small, 2, 2, {255, 20, 30}, 1);
    expect_pixel(small, 13, 6, {10, 20, 30}, 1);
    for (const int longest : {0, 64, 100}) {
        EXPECT_EQ(shrink(quarters(), longest).pixels, quarters().pixels) << longest;
    }
    EXPECT_EQ(shrink(quarters(), 1).height, 1);
}

class ImageTest : public ::testing::Test {
  protected:
    void SetUp() override { write_png(png_, quarters()); }
    ScratchFolder scratch_;
    std::string png_ = scratch_.file("a.png");
};

TEST_F(ImageTest, PngKeepsEveryPixel) {
    EXPECT_EQ(read_image(png_).pixels, quarters().pixels);
    write_png(scratch_.file("b.png"), quarters());
    EXPECT_EQ(read_file(png_), read_file(scratch_.file("b.png")));
}

TEST_F(ImageTest, OddSizesWork) {
    RgbImage image{3, 5, {}};
    for (int i = 0; i < 45; ++i) image.pixels.push_back(static_cast<uint8_t>(5 * i));
    write_png(scratch_.file("odd.png"), image);
    EXPECT_EQ(read_image(scratch_.file("odd.png")).pixels, image.pixels);
}

TEST_F(ImageTest, OtherFormatsKeepTheColours) {
    for (const char* target :
         {"a.bmp", "-pix_fmt yuvj444p -q:v 2 a.jpg", "-pix_fmt yuvj420p -q:v 2 b.jpg",
          "-quality 95 a.webp", "a.tiff", "-pix_fmt rgb48be deep.png",
          "-filter_complex 'split[a][b];[a]palettegen[p];[b][p]paletteuse=dither=none' pal.png"}) {
        const std::string text(target);
        const size_t space = text.rfind(' ');
        const std::string name = space == std::string::npos ? text : text.substr(space + 1);
        const std::string flags = space == std::string::npos ? "" : text.substr(0, space);
        ffmpeg("-i " + png_ + " " + flags + " " + scratch_.file(name));
        SCOPED_TRACE(target);
        expect_quarters(read_image(scratch_.file(name)), 6);
        // The content decides, not the name.
        std::filesystem::rename(scratch_.file(name), scratch_.file("x.dat"));
        expect_quarters(read_image(scratch_.file("x.dat")), 6);
    }
}

TEST_F(ImageTest, GreyIsNotStretched) {
    RgbImage grey{16, 16, std::vector<uint8_t>(768, 200)};
    write_png(scratch_.file("rgb.png"), grey);
    for (const char* format : {"gray", "ya8", "gray16be"}) {
        ffmpeg("-i " + scratch_.file("rgb.png") + " -vf format=" + format + " " +
               scratch_.file("grey.png"));
        SCOPED_TRACE(format);
        expect_pixel(read_image(scratch_.file("grey.png")), 4, 4, {200, 200, 200}, 1);
    }
}

TEST_F(ImageTest, TransparentPixelsBecomeWhite) {
    ffmpeg("-i " + png_ +
           " -vf \"format=rgba,geq=r='r(X,Y)':g='g(X,Y)':b='b(X,Y)':"
           "a='if(lt(X,32),0,128)'\" " +
           scratch_.file("alpha.png"));
    const RgbImage image = read_image(scratch_.file("alpha.png"));
    expect_pixel(image, 8, 8, {255, 255, 255}, 0);
    expect_pixel(image, 56, 24, {132, 137, 142}, 1);  // half of (10, 20, 30)
}

TEST_F(ImageTest, ABackdropShowsThroughTransparentPixels) {
    ffmpeg("-i " + png_ +
           " -vf \"format=rgba,geq=r='r(X,Y)':g='g(X,Y)':b='b(X,Y)':a='if(lt(X,32),0,255)'\" " +
           scratch_.file("alpha.png"));
    const std::string file = scratch_.file("alpha.png");
    const RgbImage green = read_image(file, {}, Backdrop::of("#00b140"));
    expect_pixel(green, 8, 8, {0, 177, 64}, 0);
    expect_pixel(green, 56, 24, {10, 20, 30}, 0);
    expect_quarters(read_image(file, {}, Backdrop::of(png_)), 0);
    try {
        (void)read_image(png_, {}, Backdrop::of("#00b140"));
        FAIL() << "an opaque picture has nothing for a backdrop to show through";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::bad_input);
        EXPECT_THAT(error.what(), HasSubstr("a.png: found pixels that are all opaque (rgb24)"));
    }
}

// A JPEG with an EXIF block that holds only the orientation.
std::string with_orientation(const std::string& jpeg, char orientation) {
    const std::string tiff = std::string("MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0", 19) +
                             orientation + std::string("\0\0\0\0\0\0", 6);
    const std::string body = std::string("Exif\0\0", 6) + tiff;
    const auto size = static_cast<char>(body.size() + 2);
    return jpeg.substr(0, 2) + "\xff\xe1" + std::string(1, '\0') + size + body + jpeg.substr(2);
}

TEST_F(ImageTest, ExifOrientationIsApplied) {
    ffmpeg("-i " + png_ + " -pix_fmt yuvj444p -q:v 2 " + scratch_.file("a.jpg"));
    const std::string jpeg = read_text(scratch_.file("a.jpg"));
    // Where the red quarter (first row, first column of what is stored) must be seen.
    struct Case {
        char orientation;
        bool turned;
        bool red_right;
        bool red_low;
    };
    for (const Case& wanted :
         {Case{1, false, false, false}, Case{2, false, true, false}, Case{3, false, true, true},
          Case{4, false, false, true}, Case{5, true, false, false}, Case{6, true, true, false},
          Case{7, true, true, true}, Case{8, true, false, true}}) {
        SCOPED_TRACE(static_cast<int>(wanted.orientation));
        testing::write_bytes(scratch_.file("b.jpg"), with_orientation(jpeg, wanted.orientation));
        const RgbImage image = read_image(scratch_.file("b.jpg"));
        ASSERT_EQ(image.width, wanted.turned ? 32 : 64);
        ASSERT_EQ(image.height, wanted.turned ? 64 : 32);
        const int x = wanted.red_right ? image.width - 4 : 4;
        const int y = wanted.red_low ? image.height - 4 : 4;
        expect_pixel(image, x, y, {255, 20, 30}, 6);
        // Stored right of red lies green: it tells mirrored from turned.
        const int gx = wanted.turned ? x : image.width - 1 - x;
        const int gy = wanted.turned ? image.height - 1 - y : y;
        expect_pixel(image, gx, gy, {10, 255, 30}, 6);
    }
}

std::string refusal(const std::string& file) {
    try {
        static_cast<void>(read_image(file));
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::bad_input) << error.what();
        return error.what();
    }
    ADD_FAILURE() << file << " was read";
    return "";
}

// An 8x8 JPEG of four inks, as picture editors write for print.
std::string cmyk_jpeg() {
    constexpr std::string_view kHex =
        "ffd8ffee000e41646f626500640000000000ffdb004300100b0c0e0c0a100e0d0e1211101318281a1816161831"
        "23251d283a333d3c3933383740485c4e404457453738506d51575f626768673e4d71797064785c656763ffc000"
        "140800080008044311004d11005911004b1100ffc40014000100000000000000000000000000000006ffc40014"
        "100100000000000000000000000000000000ffda000e0443004d0059004b00003f0076346258ffd9";
    std::string bytes;
    for (size_t i = 0; i < kHex.size(); i += 2) {
        bytes += static_cast<char>(std::stoi(std::string(kHex.substr(i, 2)), nullptr, 16));
    }
    return bytes;
}

TEST_F(ImageTest, CmykIsRefusedNotMiscoloured) {
    testing::write_bytes(scratch_.file("print.jpg"), cmyk_jpeg());
    EXPECT_THAT(refusal(scratch_.file("print.jpg")), HasSubstr("CMYK"));
}

TEST_F(ImageTest, HugePicturesAreRefusedBeforeTheyAreUnpacked) {
    // A good picture whose header claims another size; the check sums of ffmpeg's decoder are off
    // by default, so only the size can stop it.
    const auto claim = [&](const std::string& name, std::array<uint8_t, 8> size) {
        std::string bytes = read_text(png_);
        for (size_t i = 0; i < size.size(); ++i) bytes[16 + i] = static_cast<char>(size.at(i));
        testing::write_bytes(scratch_.file(name), bytes);
        return scratch_.file(name);
    };
    // 12000 x 12000, 16385 x 16, 16 x 16385.
    EXPECT_THAT(refusal(claim("a.png", {0, 0, 0x2e, 0xe0, 0, 0, 0x2e, 0xe0})),
                HasSubstr("12000x12000"));
    EXPECT_THAT(refusal(claim("b.png", {0, 0, 0x40, 1, 0, 0, 0, 16})), HasSubstr("16385x16"));
    EXPECT_THAT(refusal(claim("c.png", {0, 0, 0, 16, 0, 0, 0x40, 1})), HasSubstr("16x16385"));
    // Beyond what libav itself takes for a picture.
    EXPECT_THAT(refusal(claim("d.png", {0x7f, 0, 0, 0, 0x7f, 0, 0, 0})), HasSubstr("too large"));
}

TEST_F(ImageTest, CutPicturesAreRefused) {
    const std::string large = scratch_.file("large.png");
    ffmpeg("-f lavfi -i testsrc2=s=320x240 -frames:v 1 " + large);
    for (const char* name : {"a.png", "a.jpg", "a.webp"}) {
        ffmpeg("-i " + large + " " + scratch_.file(name));
        const std::string whole = read_text(scratch_.file(name));
        ASSERT_EQ(read_image(scratch_.file(name)).width, 320);
        for (const size_t part : {2, 3, 10}) {
            testing::write_bytes(scratch_.file("cut"), whole.substr(0, whole.size() / part));
            EXPECT_THAT(refusal(scratch_.file("cut")), HasSubstr("cut")) << name << " 1/" << part;
        }
    }
}

TEST_F(ImageTest, VideosAreRefusedUnlessTheyHoldOneFrame) {
    ffmpeg("-loop 1 -i " + png_ + " -frames:v 3 " + scratch_.file("three.mp4"));
    EXPECT_THAT(refusal(scratch_.file("three.mp4")), HasSubstr("video"));
    ffmpeg("-i " + png_ + " -frames:v 1 -pix_fmt yuv444p -crf 5 " + scratch_.file("one.mp4"));
    const RgbImage one = read_image(scratch_.file("one.mp4"));
    EXPECT_EQ(one.width, 64);
    EXPECT_EQ(one.height, 32);
    ffmpeg("-loop 1 -i " + png_ + " -frames:v 3 " + scratch_.file("moving.gif"));
    EXPECT_EQ(read_image(scratch_.file("moving.gif")).width, 64);
}

TEST_F(ImageTest, ErrorsNameTheFile) {
    const auto code_of = [](const std::string& file) {
        try {
            static_cast<void>(read_image(file));
        } catch (const Error& error) {
            EXPECT_THAT(error.what(), HasSubstr(file));
            return error.code();
        }
        return ErrorCode::cancelled;
    };
    EXPECT_EQ(code_of(scratch_.file("missing.png")), ErrorCode::io);
    EXPECT_EQ(code_of(scratch_.path().string()), ErrorCode::io);
    testing::write_bytes(scratch_.file("text.png"), "this is not a picture");
    EXPECT_EQ(code_of(scratch_.file("text.png")), ErrorCode::bad_input);
    testing::write_bytes(scratch_.file("cut.png"), read_text(png_).substr(0, 40));
    EXPECT_EQ(code_of(scratch_.file("cut.png")), ErrorCode::bad_input);
    testing::write_wav(scratch_.file("a.wav"), 8000, 1, std::vector<int16_t>(800));
    EXPECT_EQ(code_of(scratch_.file("a.wav")), ErrorCode::bad_input);
    EXPECT_THROW(write_png("/proc/none/a.png", quarters()), Error);
    EXPECT_THROW(write_png(scratch_.file("b.png"), RgbImage{2, 2, {1, 2, 3}}), Error);
    EXPECT_FALSE(std::filesystem::exists(scratch_.file("b.png")));
}

}  // namespace
}  // namespace newscaster::media
