#include "warp/warp_stage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "core/error_test_util.h"
#include "device/onnx_builder_test_util.h"

namespace newscaster::warp {
namespace {

using test::OnnxBuilder;
using test::TempFolder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing_support::error_of;

// flow = driving - source keypoints; field = 2 * features.
class WarpStageTest : public ::testing::Test {
  protected:
    WarpStageTest() {
        const auto file = OnnxBuilder()
                              .input("features", {1, 2})
                              .input("kp_source", {1, 1, 3})
                              .input("kp_driving", {1, 1, 3})
                              .constant<float>("two", {1}, {2.0F})
                              .node("Sub", {"kp_driving", "kp_source"}, {"flow"})
                              .node("Mul", {"features", "two"}, {"field"})
                              .output("flow", {1, 1, 3})
                              .output("field", {1, 2})
                              .save(folder_.path() / "warp.onnx");
        graph_ = device_->load(file, "", {});
        spec_.bindings = {{"source_keypoints", "kp_source"}, {"driving_keypoints", "kp_driving"}};
        add_source({1.0F, 2.0F}, {0.0F, 0.0F, 0.0F});
        add_source({3.0F, 4.0F}, {1.0F, 1.0F, 1.0F});
    }

    void add_source(const std::vector<float>& features, const std::vector<float>& keypoints) {
        const auto tensor = [&](const char* name, Shape shape, const std::vector<float>& values) {
            return device::upload(*device_, *stream_, name,
                                  Tensor::of<float>(std::move(shape), values));
        };
        sources_.push_back({{"features", tensor("features", {1, 2}, features)},
                            {"kp_source", tensor("kp_source", {1, 1, 3}, keypoints)}});
    }

    TempFolder folder_;
    std::unique_ptr<device::Device> device_ = device::open_device("cpu", {});
    std::unique_ptr<device::Stream> stream_ = device_->make_stream();
    std::unique_ptr<device::Graph> graph_;
    pack::GraphSpec spec_;
    device::SourceTensors sources_;
};

TEST_F(WarpStageTest, OutputsFollowDrivingKeypointsAndSourceFrame) {
    WarpStage stage(spec_, *device_, *graph_, sources_);
    const auto outputs = stage.outputs();
    ASSERT_EQ(outputs.size(), 2U);
    stage.run({0, 0, {5.0F, 6.0F, 7.0F}}, *stream_);
    EXPECT_THAT(outputs.at("flow")->host_f32(), ElementsAre(5.0F, 6.0F, 7.0F));
    EXPECT_THAT(outputs.at("field")->host_f32(), ElementsAre(2.0F, 4.0F));
    stage.run({1, 1, {5.0F, 6.0F, 8.0F}}, *stream_);
    EXPECT_THAT(outputs.at("flow")->host_f32(), ElementsAre(4.0F, 5.0F, 7.0F));
    EXPECT_THAT(outputs.at("field")->host_f32(), ElementsAre(6.0F, 8.0F));
    stage.run({2, 0, {0.0F, 0.0F, 0.0F}}, *stream_);
    EXPECT_THAT(outputs.at("field")->host_f32(), ElementsAre(2.0F, 4.0F));
    EXPECT_EQ(stage.outputs(), outputs);
}

// Two stages of one graph do not disturb each other.
TEST_F(WarpStageTest, StagesAreIndependent) {
    WarpStage one(spec_, *device_, *graph_, sources_);
    WarpStage two(spec_, *device_, *graph_, sources_);
    one.run({0, 0, {1.0F, 1.0F, 1.0F}}, *stream_);
    two.run({0, 1, {9.0F, 9.0F, 9.0F}}, *stream_);
    EXPECT_THAT(one.outputs().at("flow")->host_f32(), ElementsAre(1.0F, 1.0F, 1.0F));
    EXPECT_THAT(two.outputs().at("flow")->host_f32(), ElementsAre(8.0F, 8.0F, 8.0F));
}

TEST_F(WarpStageTest, MisfitsAreToldByName) {
    WarpStage stage(spec_, *device_, *graph_, sources_);
    EXPECT_THAT(error_of(
                    [&] {
                        stage.run({4, 0, {1.0F}}, *stream_);
                    },
                    ErrorCode::runtime),
                HasSubstr("frame 4: found 1 values, wanted 3"));
    for (const int64_t source : {-1, 2}) {
        EXPECT_THAT(error_of(
                        [&] {
                            stage.run({0, source, {1.0F, 1.0F, 1.0F}}, *stream_);
                        },
                        ErrorCode::runtime),
                    HasSubstr("wanted 0..1"));
    }
    sources_.back().erase("features");
    EXPECT_THAT(error_of([&] { WarpStage(spec_, *device_, *graph_, sources_); }),
                HasSubstr("'features'"));
    spec_.bindings["driving_keypoints"] = "kp_drive";
    (void)error_of([&] { WarpStage(spec_, *device_, *graph_, sources_); });
    spec_.bindings.erase("driving_keypoints");
    (void)error_of([&] { WarpStage(spec_, *device_, *graph_, sources_); });
}

}  // namespace
}  // namespace newscaster::warp
