#include "features/feature_streamer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "device/onnx_builder_test_util.h"
#include "newscaster/error.h"

namespace newscaster::features {
namespace {

struct Stream {
    std::vector<std::vector<float>> rows;

    void add(const std::vector<FeatureBlock>& blocks) {
        for (const auto& block : blocks) {
            EXPECT_EQ(block.first_frame, static_cast<int64_t>(rows.size()));
            for (int64_t i = 0; i < block.rows.dim(0); ++i) {
                const auto row = block.rows.row(i);
                rows.emplace_back(row.begin(), row.end());
            }
        }
    }
};

// Geometry of the small encoder below: frames of 4 samples, 2 past + 3 present + 1 future frames
// and 2 extra samples. It yields the samples themselves, two a row, two rows a frame.
pack::Manifest small_manifest(int64_t first_row) {
    pack::Manifest manifest;
    manifest.name = "small";
    manifest.audio = {.sample_rate_hz = 100,
                      .samples_per_frame = 4,
                      .past_frames = 2,
                      .present_frames = 3,
                      .future_frames = 1,
                      .extra_samples = 2,
                      .feature_dims = 2,
                      .rows_per_frame = 2,
                      .first_row = first_row};
    pack::GraphSpec graph;
    graph.model.file = "encoder.onnx";
    graph.inputs["wave"] = {DType::f32, {1, 26}};
    graph.outputs["rows"] = {DType::f32, {1, 13, 2}};
    graph.bindings = {{"audio", "wave"}, {"features", "rows"}};
    manifest.graphs[std::string(pack::role::kAudioEncoder)] = graph;
    return manifest;
}

class SmallEncoder : public ::testing::Test {
  protected:
    SmallEncoder() {
        const auto file = test::OnnxBuilder()
                              .input("wave", {1, 26})
                              .constant<int64_t>("shape", {3}, {1, 13, 2})
                              .node("Reshape", {"wave", "shape"}, {"rows"})
                              .output("rows", {1, 13, 2})
                              .save(folder_.path() / "encoder.onnx");
        device_ = device::open_device("cpu", {});
        graph_ = device_->load(file, sha256_of_file(file), {});
    }

    // Rows of samples 1, 2, 3, ... in one push.
    Stream run(const pack::Manifest& manifest, size_t samples, int64_t frames) {
        std::vector<float> wave(samples);
        for (size_t i = 0; i < samples; ++i) wave[i] = static_cast<float>(i + 1);
        FeatureStreamer streamer(manifest, *device_, *graph_);
        Stream stream;
        stream.add(streamer.push(wave));
        stream.add(streamer.finish(frames));
        EXPECT_EQ(streamer.frames_produced(), frames);
        return stream;
    }

    test::TempFolder folder_;
    std::unique_ptr<device::Device> device_;
    std::unique_ptr<device::Graph> graph_;
};

TEST_F(SmallEncoder, AveragesTheRowsOfEachPresentFrame) {
    const auto stream = run(small_manifest(4), 30, 8);
    ASSERT_EQ(stream.rows.size(), 8U);
    for (size_t i = 0; i < 7; ++i) {
        const auto first = static_cast<float>(4 * i + 1);
        EXPECT_THAT(stream.rows[i], ::testing::ElementsAre(first + 1.0F, first + 2.0F));
    }
    // The last frame has samples 29, 30 and two zeros.
    EXPECT_THAT(stream.rows[7], ::testing::ElementsAre(14.5F, 15.0F));
}

TEST_F(SmallEncoder, PutsZerosBeforeTheStart) {
    // Rows that start two frames early show the past context.
    const auto stream = run(small_manifest(0), 40, 10);
    EXPECT_THAT(stream.rows[0], ::testing::ElementsAre(0.0F, 0.0F));
    EXPECT_THAT(stream.rows[1], ::testing::ElementsAre(0.0F, 0.0F));
    for (size_t i = 2; i < 10; ++i) {
        const auto first = static_cast<float>(4 * (i - 2) + 1);
        EXPECT_THAT(stream.rows[i], ::testing::ElementsAre(first + 1.0F, first + 2.0F));
    }
}

TEST_F(SmallEncoder, EmitsAChunkAsSoonAsItsLookAheadIsThere) {
    const auto manifest = small_manifest(4);
    FeatureStreamer streamer(manifest, *device_, *graph_);
    // 3 present + 1 future frames of 4 samples, and 2 extra samples.
    EXPECT_TRUE(streamer.push(std::vector<float>(17)).empty());
    const auto blocks = streamer.push(std::vector<float>(1));
    ASSERT_EQ(blocks.size(), 1U);
    EXPECT_EQ(blocks[0].rows.shape(), (Shape{3, 2}));
}

TEST_F(SmallEncoder, EndsAtAnyNumberOfFrames) {
    for (int64_t frames = 0; frames <= 20; ++frames) {
        EXPECT_EQ(run(small_manifest(4), 5, frames).rows.size(), static_cast<size_t>(frames));
    }
}

TEST_F(SmallEncoder, RefusesWrongUse) {
    const auto manifest = small_manifest(4);
    FeatureStreamer streamer(manifest, *device_, *graph_);
    static_cast<void>(streamer.push(std::vector<float>(100)));
    EXPECT_THROW(static_cast<void>(streamer.finish(3)), Error);
    static_cast<void>(streamer.finish(25));
    EXPECT_THROW(static_cast<void>(streamer.push(std::vector<float>(1))), Error);

    auto wrong = small_manifest(4);
    wrong.audio.extra_samples = 3;
    EXPECT_THROW(FeatureStreamer(wrong, *device_, *graph_), Error);
    wrong = small_manifest(8);  // rows 8..13 of 13
    EXPECT_THROW(FeatureStreamer(wrong, *device_, *graph_), Error);
}

class StudioEncoder : public ::testing::Test {
  protected:
    StudioEncoder()
        : pack_(pack::Pack::open(std::filesystem::path(NEWSCASTER_SOURCE_DIR) / "packs/studio")),
          device_(device::open_device("cpu", {})),
          graph_(pack_.load_graph(*device_, pack::role::kAudioEncoder, device::Precision::f32, 1)) {
    }

    pack::Pack pack_;
    std::unique_ptr<device::Device> device_;
    std::unique_ptr<device::Graph> graph_;
};

TEST_F(StudioEncoder, RowsDoNotDependOnTheSplit) {
    std::mt19937 random(1);  // NOLINT(bugprone-random-generator-seed): the test must be repeatable
    std::normal_distribution<float> noise(0.0F, 0.07F);
    std::vector<float> wave(23456);
    for (auto& sample : wave) sample = noise(random);
    const int64_t frames = frames_covering(static_cast<int64_t>(wave.size()), 16000, {25, 1});

    FeatureStreamer whole(pack_.manifest(), *device_, *graph_);
    Stream expected;
    expected.add(whole.push(wave));
    expected.add(whole.finish(frames));
    ASSERT_EQ(expected.rows.size(), static_cast<size_t>(frames));

    for (const size_t longest : {1000U, 7000U, 20000U}) {
        FeatureStreamer streamer(pack_.manifest(), *device_, *graph_);
        Stream stream;
        std::uniform_int_distribution<size_t> size(0, longest);
        for (std::span<const float> rest(wave); !rest.empty();) {
            const size_t count = std::min(rest.size(), size(random));
            stream.add(streamer.push(rest.first(count)));
            rest = rest.subspan(count);
        }
        stream.add(streamer.finish(frames));
        EXPECT_EQ(stream.rows, expected.rows);
    }
}

TEST_F(StudioEncoder, SilenceRowsAreWhatSilenceGives) {
    FeatureStreamer streamer(pack_.manifest(), *device_, *graph_);
    const auto silence = streamer.silence_rows();
    Stream stream;
    stream.add(streamer.push(std::vector<float>(32000)));
    stream.add(streamer.finish(50));
    ASSERT_EQ(stream.rows.size(), 50U);
    for (size_t frame = 0; frame < stream.rows.size(); ++frame) {
        const auto& row = stream.rows[frame];
        const size_t first = frame * row.size() % silence.size();
        for (size_t i = 0; i < row.size(); ++i) EXPECT_NEAR(row[i], silence[first + i], 1e-5);
    }
}

}  // namespace
}  // namespace newscaster::features
