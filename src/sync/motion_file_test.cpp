#include "sync/motion_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "core/error_test_util.h"
#include "core/file.h"

namespace newscaster::sync {
namespace {

using testing_support::error_of;
namespace fs = std::filesystem;
using testing::HasSubstr;

class MotionFile : public testing::Test {
  protected:
    fs::path write(const std::string& name, const std::string& text) {
        fs::path file = folder_ / name;
        write_text_atomic(file, text);
        return file;
    }
    void expect_refused(const std::string& name, const std::string& text,
                        const std::string& reason) {
        const fs::path file = write(name, text);
        const std::string message =
            error_of([&] { (void)read_motion_file(file, 25.0); }, ErrorCode::bad_input);
        EXPECT_THAT(message, HasSubstr(name));
        EXPECT_THAT(message, HasSubstr(reason));
        EXPECT_EQ(message.find('\n'), std::string::npos);
    }

    const fs::path folder_ = fs::path(testing::TempDir()) / "sync_motion_file";
};

const std::string kNames =
    R"("yaw", "jawOpen", "mouthClose", "mouthLowerDownLeft", "mouthLowerDownRight",
       "mouthUpperUpLeft", "mouthUpperUpRight")";

TEST_F(MotionFile, JsonAndCsvGiveTheOpening) {
    const auto json =
        read_motion_file(write("m.json", R"({"fps": 30, "names": [)" + kNames +
                                             "], \"frames\": [[9, 0.5, 0.1, 0.2, 0.2, 0.4, 0], "
                                             "[9, 0.1, 0.3, 0, 0, 0, 0]]}"),
                         25.0);
    EXPECT_EQ(json.fps, 30.0);
    EXPECT_TRUE(json.zero_is_closed);
    ASSERT_EQ(json.frames(), 2U);
    EXPECT_NEAR(json.opening[0], 0.4 + 0.15 * 0.8, 1e-12);
    EXPECT_EQ(json.opening[1], 0.0);
    const auto csv =
        read_motion_file(write("m.CSV",
                               "Timecode,MouthClose,JawOpen,MouthLowerDownLeft,MouthLowerDownRight,"
                               "MouthUpperUpLeft,MouthUpperUpRight\r\n"
                               "00:00:00:00.000,0.1,0.5,0.2,0.2,0.4,0\r\n"),
                         25.0);
    EXPECT_EQ(csv.fps, 25.0);
    ASSERT_EQ(csv.frames(), 1U);
    EXPECT_NEAR(csv.opening[0], 0.52, 1e-12);
}

TEST_F(MotionFile, RefusesWhatIsNoMotion) {
    EXPECT_TRUE(is_motion_file("a/b.json"));
    EXPECT_TRUE(is_motion_file("b.csv"));
    expect_refused("b.npz", "", "wanted motion as .json or .csv");
    EXPECT_FALSE(is_motion_file("b.mp4"));
    EXPECT_THROW((void)read_motion_file(folder_ / "missing.json", 25.0), Error);
    expect_refused("broken.json", "{\"fps\": 25", "m");
    expect_refused("other.json", R"({"fps": 25, "names": ["yaw"], "frames": []})", "jawOpen");
    expect_refused("empty.json", R"({"fps": 25, "names": [)" + kNames + "], \"frames\": []}",
                   "no frames");
    expect_refused("short.json", R"({"fps": 25, "names": [)" + kNames + "], \"frames\": [[1]]}",
                   "frames[0]");
    expect_refused("fps.json", R"({"fps": 0, "names": [)" + kNames + "], \"frames\": []}", "fps");
    expect_refused("none.csv", "", "found nothing");
    expect_refused("other.csv", "Timecode,JawOpen\n", "mouthClose");
    const std::string head =
        "JawOpen,MouthClose,MouthLowerDownLeft,MouthLowerDownRight,MouthUpperUpLeft,"
        "MouthUpperUpRight\n";
    expect_refused("cells.csv", head + "1,2\n", "line 2: found 2 cells");
    expect_refused("word.csv", head + "1,2,x,4,5,6\n", "line 2: found \"x\"");
}

}  // namespace
}  // namespace newscaster::sync
