#include "motion/motion_generator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/file.h"
#include "device/onnx_builder_test_util.h"
#include "motion/noise.h"
#include "newscaster/error.h"

namespace newscaster::motion {
namespace {

namespace fs = std::filesystem;

using Track = std::vector<std::vector<float>>;

class MotionGeneratorTest : public ::testing::Test {
  protected:
    MotionGeneratorTest() : MotionGeneratorTest(studio()) {}
    explicit MotionGeneratorTest(const fs::path& folder)
        : pack_(pack::Pack::open(folder)),
          device_(device::open_device("cpu", {})),
          graph_(pack_.load_graph(*device_, pack::role::kMotionGenerator, device::Precision::f32,
                                  1)) {}

    static fs::path studio() { return fs::path(NEWSCASTER_SOURCE_DIR) / "packs/studio"; }

    [[nodiscard]] size_t feature_dims() const {
        return static_cast<size_t>(pack_.manifest().audio.feature_dims);
    }
    MotionGenerator make(const MotionOptions& options = {.seed = 1}) {
        return {pack_, *device_, *graph_, options, std::vector<float>(feature_dims(), 0.0F)};
    }
    [[nodiscard]] ControlTrack feeling(const std::string& emotion) const {
        return {pack_.manifest(), {}, emotion};
    }
    // Features in 0..1 that vary over time; a pure function of the frame.
    [[nodiscard]] FeatureBlock features(int64_t first, int64_t count) const {
        FeatureBlock block{
            .first_frame = first,
            .rows = Tensor(DType::f32, {count, pack_.manifest().audio.feature_dims})};
        for (int64_t i = 0; i < count; ++i) {
            const auto row = block.rows.row(i);
            normal_row(99, first + i, 0, row);
            for (float& value : row) value = 0.5F + 0.2F * std::tanh(value);
        }
        return block;
    }
    static void append(Track& track, const std::vector<MotionBlock>& blocks) {
        for (const auto& block : blocks) {
            EXPECT_EQ(block.first_frame, static_cast<int64_t>(track.size()));
            for (int64_t i = 0; i < block.rows.dim(0); ++i) {
                const auto row = block.rows.row(i);
                track.emplace_back(row.begin(), row.end());
            }
        }
    }
    Track run(int64_t frames, int64_t block, const MotionOptions& options = {.seed = 1}) {
        auto generator = make(options);
        Track track;
        for (int64_t at = 0; at < frames; at += block) {
            append(track, generator.push(features(at, std::min(block, frames - at))));
        }
        append(track, generator.finish());
        return track;
    }

    pack::Pack pack_;
    std::unique_ptr<device::Device> device_;
    std::unique_ptr<device::Graph> graph_;
};

TEST_F(MotionGeneratorTest, GivesOneRowPerFeatureRow) {
    const auto& spec = pack_.manifest().motion;
    const int64_t window = spec.window_frames;
    const int64_t hop = window - spec.overlap_frames;
    for (const int64_t frames : {int64_t{0}, int64_t{1}, hop - 1, hop, hop + 1, window - 1, window,
                                 window + 1, hop + window, hop + window + 1, 3 * hop}) {
        const auto track = run(frames, 5);
        EXPECT_EQ(track.size(), static_cast<size_t>(frames));
        for (const auto& row : track) {
            EXPECT_TRUE(
                std::all_of(row.begin(), row.end(), [](float v) { return std::isfinite(v); }));
        }
    }
}

TEST_F(MotionGeneratorTest, RowsDoNotDependOnTheSplit) {
    const auto expected = run(173, 173);
    EXPECT_EQ(run(173, 1), expected);
    EXPECT_EQ(run(173, 64), expected);
}

TEST_F(MotionGeneratorTest, RowsAreGivenOutAsSoonAsTheyAreFinal) {
    const auto& spec = pack_.manifest().motion;
    const int64_t hop = spec.window_frames - spec.overlap_frames;
    auto generator = make();
    EXPECT_TRUE(generator.push(features(0, spec.window_frames - 1)).empty());
    Track track;
    append(track, generator.push(features(spec.window_frames - 1, 1)));
    EXPECT_EQ(track.size(), static_cast<size_t>(hop));
    // They do not change when more follows.
    const auto longer = run(3 * spec.window_frames, 50);
    EXPECT_TRUE(std::equal(track.begin(), track.end(), longer.begin()));
}

TEST_F(MotionGeneratorTest, ClipsWhatTheManifestClips) {
    const auto track = run(160, 160);
    for (const auto& span : pack_.manifest().motion.layout) {
        if (!span.clipped) continue;
        for (const auto& row : track) {
            for (int64_t i = span.offset; i < span.offset + span.size; ++i) {
                EXPECT_GE(row[static_cast<size_t>(i)], static_cast<float>(span.low));
                EXPECT_LE(row[static_cast<size_t>(i)], static_cast<float>(span.high));
            }
        }
    }
}

TEST_F(MotionGeneratorTest, OptionsChangeTheMotion) {
    const auto base = run(40, 40);
    EXPECT_EQ(run(40, 40, {.seed = 1, .controls = feeling("neutral")}),
              base);  // the pack's default
    EXPECT_NE(run(40, 40, {.seed = 1, .controls = feeling("happy")}), base);
    EXPECT_NE(run(40, 40, {.seed = 2}), base);
    EXPECT_NE(run(40, 40, {.steps = 3, .seed = 1}), base);
}

TEST_F(MotionGeneratorTest, RefusesOptionsOutOfRange) {
    EXPECT_THROW(make({.steps = 0}), Error);
    EXPECT_THROW(make({.steps = 1001}), Error);
    EXPECT_THROW(make({.controls = feeling("hungry")}), Error);
    EXPECT_THROW(MotionGenerator(pack_, *device_, *graph_, {}, {0.0F}), Error);
}

TEST_F(MotionGeneratorTest, RefusesAGapInTheFeatures) {
    auto generator = make();
    static_cast<void>(generator.push(features(0, 3)));
    EXPECT_THROW(static_cast<void>(generator.push(features(4, 1))), Error);
}

// The studio pack with a box filter of five frames over its pose and nothing else.
class SmoothedPackTest : public MotionGeneratorTest {
  protected:
    SmoothedPackTest() : MotionGeneratorTest(make_pack(kFolder.path())) {}

    static fs::path make_pack(const fs::path& folder) {
        auto manifest = nlohmann::json::parse(read_text(studio() / "pack.json"));
        manifest["motion"]["smoothing"] = {{{"offset", 1}, {"size", 3}, {"frames", 5}}};
        for (const auto& entry : fs::directory_iterator(studio())) {
            fs::create_symlink(entry.path(), folder / entry.path().filename());
        }
        fs::remove(folder / "pack.json");
        write_text_atomic(folder / "pack.json", manifest.dump());
        return folder;
    }

    inline static const test::TempFolder kFolder;
};

TEST_F(SmoothedPackTest, SmoothsOnlyTheFilteredDims) {
    const auto track = run(173, 7);
    const auto raw_pack = pack::Pack::open(studio());
    MotionGenerator raw_generator(raw_pack, *device_, *graph_, {.seed = 1},
                                  std::vector<float>(feature_dims(), 0.0F));
    Track raw;
    append(raw, raw_generator.push(features(0, 173)));
    append(raw, raw_generator.finish());
    ASSERT_EQ(track.size(), raw.size());
    for (size_t frame = 0; frame < raw.size(); ++frame) {
        const size_t first = frame < 2 ? 0 : frame - 2;
        const size_t last = std::min(frame + 2, raw.size() - 1);
        for (size_t dim = 0; dim < raw[frame].size(); ++dim) {
            double sum = 0.0;
            for (size_t i = first; i <= last; ++i) sum += raw[i][dim];
            const double mean = sum / static_cast<double>(last - first + 1);
            const double wanted = dim >= 1 && dim < 4 ? mean : raw[frame][dim];
            EXPECT_NEAR(track[frame][dim], wanted, 1e-6);
        }
    }
}

}  // namespace
}  // namespace newscaster::motion
