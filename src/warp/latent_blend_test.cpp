#include "warp/latent_blend.h"

#include <gtest/gtest.h>

#include <random>

#include "core/error_test_util.h"

namespace newscaster::warp {
namespace {

using testing_support::error_of;

// Outputs of a warp that draws, per place, what its two keypoints say: left and right half.
class LatentBlendTest : public ::testing::Test {
  protected:
    LatentBlendTest() {
        add("placed", {1, 2, 8, 8}, DType::f32);
        add("whole", {1, 3}, DType::f32);
    }

    void add(const std::string& name, Shape shape, DType dtype) {
        outputs_[name] = device_->allocate({name, dtype, std::move(shape)}, device::Location::host);
    }

    Latents latents(unsigned seed) const {
        std::mt19937 random(seed);
        std::normal_distribution<float> value;
        Latents result{{"placed", std::vector<float>(128)}, {"whole", std::vector<float>(3)}};
        for (auto& [name, values] : result) {
            for (float& v : values) v = value(random);
        }
        return result;
    }

    std::unique_ptr<device::Device> device_ = device::open_device("cpu", {});
    std::unique_ptr<device::Stream> stream_ = device_->make_stream();
    std::map<std::string, device::BufferPtr> outputs_;
};

TEST_F(LatentBlendTest, ReadsWhatTheOutputsHold) {
    const LatentBlender blender(*device_, outputs_);
    auto values = outputs_.at("whole")->host_f32();
    values[0] = 1.0F;
    values[2] = -3.0F;
    EXPECT_EQ(blender.read(*stream_).at("whole"), (std::vector<float>{1.0F, 0.0F, -3.0F}));
    EXPECT_EQ(blender.read(*stream_).at("placed").size(), 128U);
}

TEST_F(LatentBlendTest, ABlendOfEqualKeysIsTheKey) {
    const LatentBlender blender(*device_, outputs_);
    const std::vector<float> still{-0.5F, 0.0F, 0.0F, 0.5F, 0.0F, 0.0F};
    const ShareMaps shares(BlendFit(still, {{still, 0.4}, {still, 0.6}}), still);
    const auto key = latents(1);
    blender.write({&key, &key}, shares, *stream_);
    for (const auto& [name, values] : blender.read(*stream_)) {
        for (size_t i = 0; i < values.size(); ++i) {
            EXPECT_NEAR(values[i], key.at(name)[i], 1e-5F) << name;
        }
    }
}

TEST_F(LatentBlendTest, PlacesFollowTheirKeypointsAndTheRestTheMean) {
    const LatentBlender blender(*device_, outputs_);
    const std::vector<float> a{-0.5F, 0.0F, 0.0F, 0.5F, 0.0F, 0.0F};
    const std::vector<float> b{-0.5F, 0.2F, 0.0F, 0.5F, 0.2F, 0.0F};
    const std::vector<float> target{-0.5F, 0.0F, 0.0F, 0.5F, 0.2F, 0.0F};  // left as a, right as b
    const ShareMaps shares(BlendFit(target, {{a, 0.5}, {b, 0.5}}), target);
    const auto first = latents(1);
    const auto second = latents(2);
    blender.write({&first, &second}, shares, *stream_);
    const auto blended = blender.read(*stream_);
    for (size_t plane = 0; plane < 128; plane += 64) {
        const size_t left = plane + 4 * 8 + 1;
        const size_t right = plane + 4 * 8 + 6;
        EXPECT_NEAR(blended.at("placed")[left], first.at("placed")[left], 0.02F);
        EXPECT_NEAR(blended.at("placed")[right], second.at("placed")[right], 0.02F);
    }
    for (size_t i = 0; i < 3; ++i) {
        EXPECT_NEAR(blended.at("whole")[i], 0.5F * (first.at("whole")[i] + second.at("whole")[i]),
                    1e-4F);
    }
}

TEST_F(LatentBlendTest, RefusesOutputsOfAnotherType) {
    add("odd", {1, 4}, DType::i64);
    const auto error = error_of([&] { const LatentBlender blender(*device_, outputs_); });
    EXPECT_NE(error.find("odd"), std::string::npos) << error;
}

}  // namespace
}  // namespace newscaster::warp
