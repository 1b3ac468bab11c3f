// Strides in batches against strides frame by frame, on the CPU provider with the GPU's blending
// kernels compiled for it: same plan, same frames, same order.
#include "pipeline/batch_cadence.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <vector>

#include "device/host_key_blender_test_util.h"
#include "newscaster/error.h"
#include "pipeline/batch_session_test_util.h"

namespace newscaster::pipeline {
namespace {

constexpr int64_t kFrames = 40;

std::shared_ptr<Engine::Impl> open_blending_engine() {
    auto engine = open_batched_engine();
    engine->device = std::make_unique<BlendingDevice>(std::move(engine->device));
    return engine;
}

void compare(const CadenceOptions& cadence) {
    SessionOptions options;
    options.cadence = cadence;
    const auto wanted = draw_session(open_engine(), options, kFrames);
    const auto found = draw_session(open_blending_engine(), options, kFrames);
    EXPECT_EQ(found.stats.in_between_frames, wanted.stats.in_between_frames);
    EXPECT_GT(found.stats.in_between_frames, kFrames / 4);
    expect_same_pictures(found.pictures, wanted.pictures, 2);
}

TEST(BatchCadence, Stride2FromTheWarpsOutputs) {
    compare({.stride = 2});
}

TEST(BatchCadence, AdaptiveStrideFromTheWarpsOutputs) {
    compare({.stride = 0});
}

TEST(BatchCadence, Stride3FromPictures) {
    compare({.stride = 3, .mode = StrideMode::frame});
}

TEST(BatchCadence, ADeviceThatCannotBlendSaysWhatStridesNeed) {
    const auto engine = open_batched_engine();
    const auto avatar = std::make_shared<LoadedAvatar>(engine, bundled_avatar());
    SessionOptions options;
    options.cadence.stride = 2;
    SessionCallbacks callbacks;
    callbacks.on_frame = [](const VideoFramePtr&) { return true; };
    try {
        const LiveSession session(engine, avatar, options, callbacks);
        FAIL() << "accepted";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::bad_input);
        EXPECT_NE(std::string(error.what()).find("batch size"), std::string::npos);
    }
}

TEST(BatchCadence, ACancelledSessionEnds) {
    const auto engine = open_blending_engine();
    const auto avatar = std::make_shared<LoadedAvatar>(engine, bundled_avatar());
    SessionOptions options;
    options.cadence.stride = 2;
    SessionCallbacks callbacks;
    callbacks.on_frame = [](const VideoFramePtr&) { return false; };
    LiveSession session(engine, avatar, options, callbacks);
    session.push_audio(test_sound(kFrames));
    session.close();
    EXPECT_THROW(session.wait(), Error);
}

}  // namespace
}  // namespace newscaster::pipeline
