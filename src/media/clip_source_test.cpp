#include "media/clip_source.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "media/read_ahead.h"
#include "media/test_support.h"
#include "newscaster/error.h"

namespace newscaster::media {
namespace {

class Clips : public ::testing::Test {
  protected:
    std::string make(const std::string& name, const std::string& arguments) {
        std::string file = folder_.file(name);
        const std::string command =
            fmt::format("ffmpeg -v error -nostdin -y {} '{}'", arguments, file);
        EXPECT_EQ(std::system(command.c_str()), 0) << command;
        return file;
    }

    media::testing::ScratchFolder folder_;
};

// Left half black, right half white, or the like: one pixel tells.
int at(const RgbImage& image, int x, int y) {
    return image.pixels.at(
        3 * (static_cast<size_t>(y) * static_cast<size_t>(image.width) + static_cast<size_t>(x)));
}

int count(const std::string& file, Rational fps) {
    const auto clip = ClipSource::open(file, fps);
    int pictures = 0;
    while (clip->read()) ++pictures;
    return pictures;
}

// Brightness counts up by 4 every 25th of a second; whatever the rate, k / 25 s shows 4 k.
constexpr const char* kRamp =
    "-f lavfi -i "
    "\"color=black:s=64x48:r=%s:d=2,format=gray,geq=lum='min(235,floor(T*25+0.01)*4)'\" ";

TEST_F(Clips, AnyRateKeepsItsSpeed) {
    for (const char* rate : {"6", "25", "30000/1001", "50", "60"}) {
        std::string arguments = kRamp;
        arguments.replace(arguments.find("%s"), 2, rate);
        const auto file = make("rate.mkv", fmt::format("{} -c:v ffv1", arguments));
        EXPECT_NEAR(count(file, {25, 1}), 50, 1) << rate;
        const auto clip = ClipSource::open(file, {25, 1});
        std::optional<RgbImage> picture;
        for (int k = 0; k <= 25; ++k) picture = clip->read();
        ASSERT_TRUE(picture) << rate;
        // The frame shown at 1 s is at most one frame of the clip old.
        EXPECT_LE(at(*picture, 5, 5), 101) << rate;
        EXPECT_GE(at(*picture, 5, 5), rate == std::string("6") ? 80 : 94) << rate;
    }
}

// A minute of NTSC stays in time to its end: nothing is cut to 29 frames a second.
TEST_F(Clips, NtscDoesNotDrift) {
    const auto file = make(
        "ntsc.mkv",
        "-f lavfi -i \"color=black:s=16x16:r=30000/1001:d=60,format=gray,geq=lum='20+mod(N,200)'\" "
        "-c:v ffv1");
    const auto clip = ClipSource::open(file, {25, 1});
    int64_t k = 0;
    for (auto picture = clip->read(); picture; picture = clip->read(), ++k) {
        // Containers round times: within a millisecond of a change either frame is right.
        const auto shown = [k](double slack_s) {
            const double seconds = static_cast<double>(k) / 25.0 + slack_s;
            return 20 + static_cast<int64_t>(std::max(seconds, 0.0) * 30000.0 / 1001.0) % 200;
        };
        const int found = at(*picture, 8, 8);
        ASSERT_TRUE(found == shown(-1.5e-3) || found == shown(1.5e-3))
            << "found " << found << ", wanted " << shown(0.0) << " at " << k << " / 25 s";
    }
    EXPECT_NEAR(static_cast<double>(k), 1500.0, 1.0);
}

TEST_F(Clips, ReadingAheadChangesNothing) {
    std::string arguments = kRamp;
    arguments.replace(arguments.find("%s"), 2, "25");
    const auto file = make("ahead.mkv", arguments + " -c:v ffv1");
    const auto plain = ClipSource::open(file, {25, 1});
    const auto ahead = read_ahead(ClipSource::open(file, {25, 1}));
    int pictures = 0;
    for (auto wanted = plain->read(); wanted; wanted = plain->read(), ++pictures) {
        const auto found = ahead->read();
        ASSERT_TRUE(found);
        EXPECT_EQ(found->pixels, wanted->pixels);
    }
    EXPECT_GT(pictures, 40);
    EXPECT_FALSE(ahead->read());
    EXPECT_FALSE(ahead->read());
    // Given up in the middle, its thread ends.
    const auto left = read_ahead(ClipSource::open(file, {25, 1}));
    EXPECT_TRUE(left->read());
}

TEST_F(Clips, ReadingAheadPassesFaultsOn) {
    class Faulty : public ClipSource {
      public:
        std::optional<RgbImage> read() override {
            if (reads_++ < 2) return RgbImage{2, 2, std::vector<uint8_t>(12)};
            throw Error(ErrorCode::bad_input, "damaged");
        }

      private:
        int reads_ = 0;
    };
    const auto clip = read_ahead(std::make_unique<Faulty>());
    EXPECT_TRUE(clip->read());
    EXPECT_TRUE(clip->read());
    EXPECT_THROW((void)clip->read(), Error);
}

TEST_F(Clips, UnevenTimesCount) {
    // Frames 0..24 stay, then every other one is dropped.
    std::string arguments = kRamp;
    arguments.replace(arguments.find("%s"), 2, "25");
    const auto file = make(
        "vfr.mkv",
        fmt::format("{} -vf \"select='lt(n,25)+not(mod(n,2))'\" -vsync vfr -c:v ffv1", arguments));
    const auto clip = ClipSource::open(file, {25, 1});
    for (int k = 0; k < 45; ++k) {
        const auto picture = clip->read();
        ASSERT_TRUE(picture) << k;
        const int expected = 4 * (k < 25 ? k : k / 2 * 2);
        EXPECT_NEAR(at(*picture, 5, 5), expected, 1) << k;
    }
}

TEST_F(Clips, PhonesThatWereTurned) {
    const auto flat = make("flat.mp4",
                           "-f lavfi -i color=black:s=64x48:r=25:d=0.2,"
                           "drawbox=x=0:y=0:w=32:h=24:c=white:t=fill -c:v libx264 -crf 1");
    struct Case {
        const char* degrees;
        int width, height, x, y;  // where the white corner is once upright
    };
    for (const Case& c :
         {Case{"90", 48, 64, 12, 48}, Case{"180", 64, 48, 48, 36}, Case{"270", 48, 64, 36, 16}}) {
        const auto file = make(
            "turned.mp4", fmt::format("-i '{}' -c copy -metadata:s:v rotate={}", flat, c.degrees));
        const auto picture = ClipSource::open(file, {25, 1})->read();
        ASSERT_TRUE(picture);
        EXPECT_EQ(picture->width, c.width) << c.degrees;
        EXPECT_EQ(picture->height, c.height) << c.degrees;
        EXPECT_GT(at(*picture, c.x, c.y), 200) << c.degrees;
        EXPECT_LT(at(*picture, c.width - 1 - c.x, c.height - 1 - c.y), 50) << c.degrees;
    }
}

TEST_F(Clips, SizesAndDepths) {
    const auto wide =
        make("wide.mkv", "-f lavfi -i color=gray:s=64x48:r=25:d=0.2,setsar=4/3 -c:v libx264");
    auto picture = ClipSource::open(wide, {25, 1})->read();
    EXPECT_EQ(picture->width, 85);
    EXPECT_EQ(picture->height, 48);
    const auto odd = make(
        "odd.mkv",
        "-f lavfi -i color=white:s=64x48:r=25:d=0.2,scale=63:47 -pix_fmt yuv444p10le -c:v ffv1");
    picture = ClipSource::open(odd, {25, 1})->read();
    EXPECT_EQ(picture->width, 63);
    EXPECT_EQ(picture->height, 47);
    EXPECT_NEAR(at(*picture, 62, 46), 255, 1);
}

TEST_F(Clips, InterlacedLinesDoNotComb) {
    // Odd lines are white, even lines black: two fields of two moments.
    const auto file = make("comb.mkv",
                           "-f lavfi -i \"color=black:s=64x48:r=25:d=0.2,format=gray,"
                           "geq=lum='235*mod(Y,2)',setfield=tff\" -c:v ffv1 -field_order tt");
    const auto picture = ClipSource::open(file, {25, 1})->read();
    ASSERT_TRUE(picture);
    for (int y = 0; y < 48; ++y) EXPECT_LT(at(*picture, 10, y), 10) << y;
}

TEST_F(Clips, ClipsAndPictures) {
    EXPECT_TRUE(is_clip(make("a.mp4", "-f lavfi -i color=gray:s=64x48:r=25:d=0.2 -c:v libx264")));
    EXPECT_FALSE(
        is_clip(make("b.mp4", "-f lavfi -i color=gray:s=64x48:r=25 -frames:v 1 -c:v libx264")));
    EXPECT_FALSE(is_clip(make("c.png", "-f lavfi -i color=gray:s=64x48 -frames:v 1")));
}

}  // namespace
}  // namespace newscaster::media
