#include "pipeline/clip_tensors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace newscaster::pipeline {
namespace {

Tensor filled(Shape shape, float value) {
    Tensor tensor(DType::f32, std::move(shape));
    std::ranges::fill(tensor.as<float>(), value);
    return tensor;
}

TensorMap entry(float value) {
    TensorMap tensors;
    tensors.emplace("small", filled({1, 3}, value));
    tensors.emplace("large", filled({1, 2, 4096}, value));
    return tensors;
}

TEST(TensorStack, KeepsEntriesInOrderAndLargeOnesAsHalves) {
    TensorStack stack;
    stack.append(entry(0.25F));
    stack.append(entry(-3.0F));
    stack.repeat(0);
    EXPECT_EQ(stack.entries(), 3);
    const TensorMap tensors = stack.take();
    EXPECT_EQ(stack.entries(), 0);
    EXPECT_EQ(tensors.at("small").dtype(), DType::f32);
    EXPECT_EQ(tensors.at("large").dtype(), DType::f16);
    EXPECT_EQ(tensors.at("large").shape(), (Shape{3, 2, 4096}));
    const std::vector<float> wanted{0.25F, -3.0F, 0.25F};
    for (const auto* name : {"small", "large"}) {
        const Tensor values = tensors.at(name).to_f32();
        for (size_t i = 0; i < wanted.size(); ++i) {
            for (const float value : values.row(static_cast<int64_t>(i))) {
                ASSERT_EQ(value, wanted[i]) << name << " " << i;
            }
        }
    }
}

RgbImage grey(uint8_t level) {
    return {256, 256, std::vector<uint8_t>(size_t{256} * 256 * 3, level)};
}

void brighten(RgbImage& image, int x0, int y0, int side, int by) {
    for (int y = y0; y < y0 + side; ++y) {
        for (int x = x0; x < x0 + side; ++x) {
            for (int c = 0; c < 3; ++c) {
                uint8_t& value = image.pixels[static_cast<size_t>(3 * (y * 256 + x) + c)];
                value = static_cast<uint8_t>(value + by);
            }
        }
    }
}

TEST(KeyFrames, NoiseIsNoReasonForNewFeatures) {
    KeyFrames keys(1);
    std::mt19937 random(3);
    std::normal_distribution<double> noise(0.0, 4.0);
    for (int frame = 0; frame < 10; ++frame) {
        RgbImage image = grey(120);
        for (uint8_t& value : image.pixels) {
            value = static_cast<uint8_t>(std::lround(value + noise(random)));
        }
        EXPECT_EQ(keys.is_key(image), frame == 0) << frame;
    }
}

TEST(KeyFrames, ASmallThingThatMovesAndSlowLightAre) {
    KeyFrames keys(1);
    RgbImage image = grey(120);
    EXPECT_TRUE(keys.is_key(image));
    brighten(image, 100, 100, 4, 30);
    EXPECT_TRUE(keys.is_key(image));
    EXPECT_FALSE(keys.is_key(image));
    // One level a frame: never much from one frame to the next, but from the last key.
    int found = 0;
    for (uint8_t level = 121; level < 141; ++level) found += keys.is_key(grey(level)) ? 1 : 0;
    EXPECT_GE(found, 5);
}

TEST(KeyFrames, NeverCloserThanTheGap) {
    KeyFrames keys(4);
    std::vector<int> found;
    for (int frame = 0; frame < 12; ++frame) {
        if (keys.is_key(grey(frame % 2 == 0 ? 40 : 200))) found.push_back(frame);
    }
    ASSERT_GE(found.size(), 2U);
    for (size_t i = 1; i < found.size(); ++i) EXPECT_GE(found[i] - found[i - 1], 4);
}

}  // namespace
}  // namespace newscaster::pipeline
