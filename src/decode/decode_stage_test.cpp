#include "decode/decode_stage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "core/error_test_util.h"
#include "device/onnx_builder_test_util.h"

namespace newscaster::decode {
namespace {

using test::OnnxBuilder;
using test::TempFolder;
using ::testing::Each;
using ::testing::HasSubstr;
using testing_support::error_of;

// image = rgb + flow + mean of the driving keypoints, flow of one value.
class DecodeStageTest : public ::testing::Test {
  protected:
    DecodeStageTest() {
        graph_ = load({1, 3, 2, 2});
        spec_.bindings = {{"driving_keypoints", "kp_driving"}, {"image", "out"}};
        for (const float value : {0.25F, 0.5F}) {
            const std::vector<float> rgb(12, value);
            sources_.push_back({{"rgb", device::upload(*device_, *stream_, "rgb",
                                                       Tensor::of<float>({1, 3, 2, 2}, rgb))}});
        }
        flow_ = device_->allocate({"flow", DType::f32, {1, 1, 1, 1}}, device::Location::device);
        upstream_["flow"] = flow_;
    }

    std::unique_ptr<device::Graph> load(const Shape& image) {
        return device_->load(OnnxBuilder()
                                 .input("rgb", image)
                                 .input("flow", {1, 1, 1, 1})
                                 .input("kp_driving", {1, 2, 3})
                                 .node("ReduceMean", {"kp_driving"}, {"mean"})
                                 .node("Add", {"rgb", "flow"}, {"moved"})
                                 .node("Add", {"moved", "mean"}, {"out"})
                                 .output("out", image)
                                 .save(folder_.path() / "decoder.onnx"),
                             "", {});
    }

    DecodeStage make() { return {spec_, *device_, *graph_, sources_, upstream_}; }

    TempFolder folder_;
    std::unique_ptr<device::Device> device_ = device::open_device("cpu", {});
    std::unique_ptr<device::Stream> stream_ = device_->make_stream();
    std::unique_ptr<device::Graph> graph_;
    pack::GraphSpec spec_;
    device::SourceTensors sources_;
    std::map<std::string, device::BufferPtr> upstream_;
    device::BufferPtr flow_;
};

TEST_F(DecodeStageTest, DrawsFromSourceUpstreamAndKeypoints) {
    auto stage = make();
    const std::vector<float> zeros(6, 0.0F);
    auto image = stage.run({0, 0, zeros}, *stream_);
    ASSERT_EQ(image.size(), 12U);
    EXPECT_THAT(image, Each(0.25F));
    flow_->host_f32()[0] = 0.125F;
    EXPECT_THAT(stage.run({1, 1, zeros}, *stream_), Each(0.625F));
    EXPECT_THAT(stage.run({2, 0, std::vector<float>(6, 0.25F)}, *stream_), Each(0.625F));
    flow_->host_f32()[0] = 0.0F;
    EXPECT_THAT(stage.run({3, 0, zeros}, *stream_), Each(0.25F));
}

// A decoder need not take keypoints; frames may then carry any number of them.
TEST_F(DecodeStageTest, KeypointsAreOptional) {
    spec_.bindings.erase("driving_keypoints");
    upstream_["kp_driving"] =
        device_->allocate({"kp_driving", DType::f32, {1, 2, 3}}, device::Location::device);
    auto stage = make();
    EXPECT_THAT(stage.run({0, 1, {7.0F}}, *stream_), Each(0.5F));
}

TEST_F(DecodeStageTest, MisfitsAreToldByName) {
    auto stage = make();
    EXPECT_THAT(error_of(
                    [&] {
                        (void)stage.run({8, 0, {1.0F}}, *stream_);
                    },
                    ErrorCode::runtime),
                HasSubstr("frame 8: found 1 values, wanted 6"));
    EXPECT_THAT(error_of(
                    [&] {
                        (void)stage.run({0, 2, std::vector<float>(6)}, *stream_);
                    },
                    ErrorCode::runtime),
                HasSubstr("wanted 0..1"));
    upstream_.clear();
    EXPECT_THAT(error_of([&] { (void)make(); }), HasSubstr("'flow'"));
}

TEST_F(DecodeStageTest, ImageMustBeASquarePicture) {
    graph_ = load({1, 3, 2, 4});
    EXPECT_THAT(error_of([&] { (void)make(); }),
                HasSubstr("found f32[1,3,2,4], wanted f32[1,3,size,size]"));
    spec_.bindings["image"] = "picture";
    (void)error_of([&] { (void)make(); });
}

}  // namespace
}  // namespace newscaster::decode
