// Blending of keyframes on a device against the stages that do it on the CPU: the kernels' text
// compiled for this machine, and the kernels themselves where there is a GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <vector>

#include "core/keypoint_blend.h"
#include "decode/crop_blend.h"
#include "device/host_key_blender_test_util.h"
#include "newscaster/error.h"
#include "pipeline/blend_tables.h"
#include "warp/latent_blend.h"

namespace newscaster {
namespace {

using device::KeyBlender;

constexpr size_t kKeys = 3;
constexpr int64_t kCrop = 72;
constexpr size_t kKeypoints = 12;

class Blend {
  public:
    Blend(device::Device& device, const KeyBlender& blender, unsigned seed)
        : device_(device), blender_(blender), stream_(device.make_stream()), random_(seed) {
        std::uniform_real_distribution<float> place(-0.8F, 0.8F);
        std::uniform_real_distribution<float> step(-0.04F, 0.04F);
        for (size_t i = 0; i < 3 * kKeypoints; ++i) target_.push_back(place(random_));
        for (size_t key = 0; key < kKeys; ++key) {
            auto frame = std::make_shared<pipeline::Keyframe>();
            for (const float value : target_) frame->keypoints.push_back(value + step(random_));
            task_.sources.push_back({frame, key < 2 ? 0.5 : 0.0});
        }
        task_.frame.keypoints = target_;
    }

    // Entries of a buffer: the keyframes' values.
    std::vector<std::vector<float>> keys(size_t values, float low, float high) {
        std::uniform_real_distribution<float> value(low, high);
        std::vector<std::vector<float>> result(kKeys, std::vector<float>(values));
        for (auto& key : result) std::ranges::generate(key, [&] { return value(random_); });
        return result;
    }

    // What a blender makes of the keys in an entry of `shape` (without the batch).
    std::vector<float> mixed(const std::vector<std::vector<float>>& keys, Shape shape,
                             StrideMode mode, device::Location place) {
        pipeline::BlendTables tables(device_, mode, 2, kCrop, place);
        const std::vector<pipeline::RenderTask> tasks(2, task_);
        tables.upload(tasks, *stream_);
        shape.insert(shape.begin(), kKeys + 1);
        const device::TensorInfo info{"values", DType::f32, shape};
        const auto host = device_.allocate(info, device::Location::pinned);
        const size_t count = keys.front().size();
        for (size_t i = 0; i < kKeys; ++i) {
            std::ranges::copy(keys[i], host->host_f32().subspan((i + 1) * count).begin());
        }
        const auto values = device_.allocate(info, place);
        const auto target = device_.allocate(info, place);
        device_.copy(*host, *values, *stream_);
        stream_->synchronize();
        std::vector<KeyBlender::Entry> parts;
        for (size_t i = 0; i < kKeys; ++i) parts.push_back({values.get(), i + 1});
        const KeyBlender& blender =
            place == device::Location::device ? blender_ : static_cast<const KeyBlender&>(host_);
        if (mode == StrideMode::frame) {
            blender.move(parts, tables.shares(1), tables.x_offsets(1), tables.y_offsets(1),
                         {target.get(), 1}, *stream_);
        } else {
            blender.mix(parts, shape.size() > 3 ? tables.shares(1) : tables.overall(1),
                        {target.get(), 1}, *stream_);
        }
        device_.copy(*target, *host, *stream_);
        stream_->synchronize();
        const auto all = host->host_f32();
        EXPECT_TRUE(std::ranges::all_of(all.first(count), [](float v) { return v == 0.0F; }));
        const auto found = all.subspan(count, count);
        return {found.begin(), found.end()};
    }

    ShareMaps shares() const {
        std::vector<BlendKey> keys;
        for (const auto& [key, prior] : task_.sources) keys.push_back({key->keypoints, prior});
        return {BlendFit(target_, keys), target_};
    }

    // What warp::LatentBlender makes of them.
    std::vector<float> blended(device::Device& cpu, const std::vector<std::vector<float>>& keys,
                               Shape shape) {
        const auto stream = cpu.make_stream();
        shape.insert(shape.begin(), 1);
        const auto buffer = cpu.allocate({"values", DType::f32, shape}, device::Location::device);
        const warp::LatentBlender blender(cpu, {{"values", buffer}});
        std::vector<warp::Latents> latents;
        latents.reserve(keys.size());
        for (const auto& key : keys) latents.push_back({{"values", key}});
        std::vector<const warp::Latents*> pointers;
        pointers.reserve(keys.size());
        for (const auto& latent : latents) pointers.push_back(&latent);
        blender.write(pointers, shares(), *stream);
        const auto found = buffer->host_f32();
        return {found.begin(), found.end()};
    }

    std::vector<float> moved(const std::vector<std::vector<float>>& keys) const {
        std::vector<decode::CropKey> crops;
        for (size_t i = 0; i < keys.size(); ++i) {
            crops.push_back({task_.sources[i].key->keypoints, keys[i]});
        }
        return decode::blend_crops(target_, crops, shares(), kCrop);
    }

  private:
    device::Device& device_;
    const KeyBlender& blender_;
    const HostKeyBlender host_;
    std::unique_ptr<device::Stream> stream_;
    std::mt19937 random_;
    std::vector<float> target_;
    pipeline::RenderTask task_;
};

void expect_near(const std::vector<float>& found, const std::vector<float>& wanted,
                 float tolerance) {
    ASSERT_EQ(found.size(), wanted.size());
    for (size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], wanted[i], tolerance) << i;
}

constexpr float kTolerance = 2e-4F;
constexpr float kPictureTolerance = 1e-3F;

TEST(KeyBlend, TheKernelsTextDoesWhatTheStagesDo) {
    const auto device = device::open_device("cpu", {});
    const HostKeyBlender blender;
    constexpr auto kPlace = device::Location::device;
    for (const unsigned seed : {1U, 2U, 3U}) {
        SCOPED_TRACE(seed);
        Blend blend(*device, blender, seed);
        for (const Shape& shape : {Shape{5, 24, 20}, Shape{37}, Shape{2, 3, 8, 8}}) {
            const auto keys = blend.keys(static_cast<size_t>(element_count(shape)), -4.0F, 4.0F);
            expect_near(blend.mixed(keys, shape, StrideMode::warp, kPlace),
                        blend.blended(*device, keys, shape), kTolerance);
        }
        const auto crops = blend.keys(3 * kCrop * kCrop, 0.0F, 1.0F);
        expect_near(blend.mixed(crops, {3, kCrop, kCrop}, StrideMode::frame, kPlace),
                    blend.moved(crops), kPictureTolerance);
    }
}

TEST(KeyBlend, TheGpuDoesWhatTheStagesDo) {
    std::unique_ptr<device::Device> device;
    try {
        device = device::open_device("cuda", {});
    } catch (const Error& error) {
        GTEST_SKIP() << error.what();
    }
    const auto blender = device->make_key_blender();
    for (const unsigned seed : {1U, 2U, 3U}) {
        SCOPED_TRACE(seed);
        Blend blend(*device, *blender, seed);
        const auto both = [&](const std::vector<std::vector<float>>& keys, const Shape& shape,
                              StrideMode mode, float tolerance) {
            expect_near(blend.mixed(keys, shape, mode, device::Location::device),
                        blend.mixed(keys, shape, mode, device::Location::pinned), tolerance);
        };
        for (const Shape& shape : {Shape{5, 24, 20}, Shape{37}, Shape{2, 3, 8, 8}}) {
            both(blend.keys(static_cast<size_t>(element_count(shape)), -4.0F, 4.0F), shape,
                 StrideMode::warp, kTolerance);
        }
        both(blend.keys(3 * kCrop * kCrop, 0.0F, 1.0F), {3, kCrop, kCrop}, StrideMode::frame,
             kPictureTolerance);
    }
    const auto stream = device->make_stream();
    const auto buffer = device->allocate({"few", DType::f32, {2, 8}}, device::Location::device);
    const auto other = device->allocate({"more", DType::f32, {2, 9}}, device::Location::device);
    const KeyBlender::Entry entry{buffer.get(), 0};
    const KeyBlender::Grids grids{buffer.get(), 0, 1, 1};
    EXPECT_THROW(blender->mix({}, grids, entry, *stream), Error);
    EXPECT_THROW(blender->mix({{other.get(), 0}}, grids, entry, *stream), Error);
    EXPECT_THROW(blender->mix({entry}, {buffer.get(), 16, 1, 1}, entry, *stream), Error);
    EXPECT_THROW(blender->mix({entry}, grids, {buffer.get(), 2}, *stream), Error);
    EXPECT_THROW(blender->move({entry}, grids, grids, grids, entry, *stream), Error);
}

}  // namespace
}  // namespace newscaster
