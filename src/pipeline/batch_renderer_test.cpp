// Batches against frame-by-frame drawing, on the CPU provider: same frames, same order.
#include "pipeline/batch_renderer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <vector>

#include "newscaster/engine.h"
#include "newscaster/error.h"
#include "pack/manifest.h"
#include "pipeline/live_session.h"

namespace newscaster::pipeline {
namespace {

constexpr int kBatch = 3;
constexpr int64_t kFrames = 20;  // not a multiple of the batch

std::shared_ptr<Engine::Impl> open_engine() {
    EngineOptions options;
    options.pack = std::filesystem::path(NEWSCASTER_SOURCE_DIR) / "packs/studio";
    options.provider = "cpu";
    options.precision = "f32";
    options.threads = 2;
    options.frames_in_flight = 1;
    return std::make_shared<Engine::Impl>(options);
}

// The same engine, told to draw in batches as on a GPU.
std::shared_ptr<Engine::Impl> open_batched_engine() {
    auto engine = open_engine();
    engine->info.batched = true;
    engine->info.frames_in_flight = kBatch;
    engine->warp = engine->pack.load_graph(*engine->device, pack::role::kWarp,
                                           device::Precision::f32, 1, kBatch);
    engine->decoder = engine->pack.load_graph(*engine->device, pack::role::kDecoder,
                                              device::Precision::f32, 1, kBatch);
    return engine;
}

std::vector<Nv12Image> draw(const std::shared_ptr<Engine::Impl>& engine) {
    const auto avatar = std::make_shared<LoadedAvatar>(
        engine, std::filesystem::path(NEWSCASTER_SOURCE_DIR) / "avatars/anna");
    std::vector<Nv12Image> pictures;
    SessionCallbacks callbacks;
    callbacks.on_frame = [&](const VideoFramePtr& frame) {
        EXPECT_EQ(frame->index, std::ssize(pictures));
        const auto pixels = static_cast<size_t>(frame->width) * static_cast<size_t>(frame->height);
        pictures.push_back({frame->width,
                            frame->height,
                            {frame->y, frame->y + pixels},
                            {frame->uv, frame->uv + pixels / 2}});
        return true;
    };
    LiveSession session(engine, avatar, {}, callbacks);
    std::vector<float> sound(static_cast<size_t>(kFrames * 640));
    for (size_t i = 0; i < sound.size(); ++i) {
        sound[i] = static_cast<float>(0.3 * std::sin(0.06 * static_cast<double>(i)));
    }
    session.push_audio(sound);
    session.close();
    session.wait();
    EXPECT_EQ(session.stats().frames, kFrames);
    return pictures;
}

int largest_difference(const std::vector<uint8_t>& a, const std::vector<uint8_t>& b) {
    int largest = 0;
    for (size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
    return largest;
}

TEST(BatchRenderer, DrawsWhatFrameByFrameDrawingDraws) {
    const auto wanted = draw(open_engine());
    const auto found = draw(open_batched_engine());
    ASSERT_EQ(std::ssize(wanted), kFrames);
    ASSERT_EQ(found.size(), wanted.size());
    for (size_t i = 0; i < wanted.size(); ++i) {
        SCOPED_TRACE(i);
        ASSERT_EQ(found[i].y.size(), wanted[i].y.size());
        // A batch of three may add up in another order: one level at rounding borders.
        EXPECT_LE(largest_difference(found[i].y, wanted[i].y), 1);
        EXPECT_LE(largest_difference(found[i].uv, wanted[i].uv), 1);
    }
    EXPECT_GT(largest_difference(wanted.front().y, wanted.back().y), 8) << "nothing moves";
}

TEST(BatchRenderer, ASessionWithStridesSaysWhatItNeeds) {
    const auto engine = open_batched_engine();
    const auto avatar = std::make_shared<LoadedAvatar>(
        engine, std::filesystem::path(NEWSCASTER_SOURCE_DIR) / "avatars/anna");
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

}  // namespace
}  // namespace newscaster::pipeline
