#include "motion/motion_export.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <numbers>
#include <sstream>

#include "core/file.h"
#include "device/onnx_builder_test_util.h"
#include "newscaster/error.h"

namespace newscaster::motion {
namespace {

namespace fs = std::filesystem;

// A layout with few of the ARKit channels, in an order of its own.
pack::Manifest small_manifest() {
    pack::Manifest manifest;
    manifest.name = "small";
    manifest.frame_rate = {25, 1};
    auto& motion = manifest.motion;
    motion.dims = 8;
    motion.layout = {
        {.name = "yaw", .kind = pack::SpanKind::yaw_deg, .offset = 0, .size = 1, .channels = {}},
        {.name = "translation",
         .kind = pack::SpanKind::translation,
         .offset = 1,
         .size = 3,
         .channels = {}},
        {.name = "blendshapes",
         .kind = pack::SpanKind::blendshapes,
         .offset = 4,
         .size = 4,
         .channels = {"tongueOut", "jawOpen", "eyeLookOutLeft", "eyeLookOutRight"}}};
    return manifest;
}

const std::vector<float> kRow{90.0F, 0.1F, 0.2F, 0.3F, 0.25F, 0.5F, 1.0F, 0.5F};

class MotionExport : public ::testing::Test {
  protected:
    fs::path write(const std::string& name, int64_t frames) {
        auto file = folder_.path() / name;
        const auto exporter = MotionExporter::open(file, small_manifest());
        for (int64_t i = 0; i < frames; ++i) {
            auto row = kRow;
            row[1] = static_cast<float>(i);
            exporter->write(i, row);
        }
        EXPECT_FALSE(fs::exists(file));
        exporter->finish();
        return file;
    }

    test::TempFolder folder_;
};

std::vector<std::string> split(const std::string& line) {
    std::vector<std::string> cells;
    std::istringstream stream(line);
    for (std::string cell; std::getline(stream, cell, ',');) cells.push_back(cell);
    return cells;
}

TEST_F(MotionExport, CsvHasTheLiveLinkColumns) {
    std::istringstream text(read_text(write("a.csv", 27)));
    std::string line;
    std::getline(text, line);
    const auto header = split(line);
    ASSERT_EQ(header.size(), 63U);
    EXPECT_EQ(header[0], "Timecode");
    EXPECT_EQ(header[1], "BlendShapeCount");
    EXPECT_EQ(header[2], "EyeBlinkLeft");
    EXPECT_EQ(header[53], "TongueOut");
    EXPECT_EQ(header[54], "HeadYaw");
    EXPECT_EQ(header[62], "RightEyeRoll");

    const auto column = [&](const std::string& name) {
        return static_cast<size_t>(std::find(header.begin(), header.end(), name) - header.begin());
    };
    std::vector<std::vector<std::string>> rows;
    while (std::getline(text, line)) rows.push_back(split(line));
    ASSERT_EQ(rows.size(), 27U);
    EXPECT_EQ(rows[0][0], "00:00:00:00.000");
    EXPECT_EQ(rows[26][0], "00:00:01:01.000");
    for (const auto& row : rows) {
        ASSERT_EQ(row.size(), header.size());
        EXPECT_EQ(row[1], "61");
        EXPECT_EQ(row[column("JawOpen")], "0.500000");
        EXPECT_EQ(row[column("TongueOut")], "0.250000");
        EXPECT_EQ(row[column("MouthClose")], "0.000000");
        EXPECT_NEAR(std::stod(row[column("HeadYaw")]), -std::numbers::pi / 2.0, 1e-6);
        EXPECT_NEAR(std::stod(row[column("LeftEyeYaw")]), std::numbers::pi / 6.0, 1e-6);
        EXPECT_NEAR(std::stod(row[column("RightEyeYaw")]), -std::numbers::pi / 12.0, 1e-6);
        EXPECT_EQ(std::stod(row[column("LeftEyePitch")]), 0.0);
    }
}

TEST_F(MotionExport, JsonHoldsEveryValueExactly) {
    const auto json = nlohmann::json::parse(read_text(write("a.json", 3)));
    EXPECT_EQ(json["fps"], 25.0);
    EXPECT_EQ(json["names"].dump(),
              R"(["yaw","translation_0","translation_1","translation_2","tongueOut","jawOpen",)"
              R"("eyeLookOutLeft","eyeLookOutRight"])");
    ASSERT_EQ(json["frames"].size(), 3U);
    for (size_t frame = 0; frame < 3; ++frame) {
        auto wanted = kRow;
        wanted[1] = static_cast<float>(frame);
        EXPECT_EQ(json["frames"][frame].get<std::vector<float>>(), wanted);
    }
}

TEST_F(MotionExport, NoFramesIsAValidFile) {
    EXPECT_TRUE(nlohmann::json::parse(read_text(write("none.json", 0)))["frames"].empty());
    EXPECT_THAT(read_text(write("none.npz", 0)), ::testing::HasSubstr("'shape': (0, 8)"));
}

// numpy itself reads a file in tests/golden/check_npz.py; here the rows and the row count.
TEST_F(MotionExport, NpzHoldsRowsAfterTheirHeader) {
    const auto bytes = read_text(write("a.npz", 300));
    EXPECT_THAT(bytes.substr(0, 300), ::testing::HasSubstr("'descr': '<f4'"));
    EXPECT_THAT(bytes.substr(0, 300), ::testing::HasSubstr("'shape': (300, 8)"));
    EXPECT_THAT(bytes, ::testing::HasSubstr("names.npy"));
    constexpr size_t kData = 30 + 10 + 128;  // local header, "motion.npy", npy header
    for (size_t frame = 0; frame < 300; ++frame) {
        std::vector<float> row(8);
        std::memcpy(row.data(), bytes.data() + kData + frame * 32, 32);
        auto wanted = kRow;
        wanted[1] = static_cast<float>(frame);
        EXPECT_EQ(row, wanted);
    }
}

TEST_F(MotionExport, EqualMotionGivesEqualBytes) {
    for (const std::string extension : {".csv", ".json", ".npz"}) {
        EXPECT_EQ(read_text(write("x" + extension, 5)), read_text(write("y" + extension, 5)));
    }
}

TEST_F(MotionExport, AnUnfinishedExportLeavesNothing) {
    for (const std::string extension : {".csv", ".json", ".npz"}) {
        MotionExporter::open(folder_.path() / ("z" + extension), small_manifest())->write(0, kRow);
    }
    EXPECT_TRUE(fs::is_empty(folder_.path()));
}

TEST_F(MotionExport, RefusesWrongUse) {
    const auto manifest = small_manifest();
    EXPECT_THROW(MotionExporter::open(folder_.path() / "a.fbx", manifest), Error);
    auto bare = manifest;
    bare.motion.layout.pop_back();
    EXPECT_THROW(MotionExporter::open(folder_.path() / "a.csv", bare), Error);

    const auto exporter = MotionExporter::open(folder_.path() / "a.json", manifest);
    EXPECT_THROW(exporter->write(1, kRow), Error);
    EXPECT_THROW(exporter->write(0, std::vector<float>{1.0F}), Error);
    auto row = kRow;
    row[2] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_THROW(exporter->write(0, row), Error);
}

}  // namespace
}  // namespace newscaster::motion
