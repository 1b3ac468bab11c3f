// Sessions of the bundled pack, frame by frame and in batches, on the CPU provider.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <vector>

#include "newscaster/engine.h"
#include "pack/manifest.h"
#include "pipeline/live_session.h"

namespace newscaster::pipeline {

inline constexpr int kTestBatch = 3;

inline std::shared_ptr<Engine::Impl> open_engine() {
    EngineOptions options;
    options.pack = std::filesystem::path(NEWSCASTER_SOURCE_DIR) / "packs/studio";
    options.provider = "cpu";
    options.precision = "f32";
    options.threads = 2;
    options.frames_in_flight = 1;
    return std::make_shared<Engine::Impl>(options);
}

// The same engine, told to draw in batches as on a GPU.
inline std::shared_ptr<Engine::Impl> open_batched_engine() {
    auto engine = open_engine();
    engine->info.batched = true;
    engine->info.frames_in_flight = kTestBatch;
    engine->warp = engine->pack.load_graph(*engine->device, pack::role::kWarp,
                                           device::Precision::f32, 1, kTestBatch);
    engine->decoder = engine->pack.load_graph(*engine->device, pack::role::kDecoder,
                                              device::Precision::f32, 1, kTestBatch);
    return engine;
}

inline std::filesystem::path bundled_avatar() {
    return std::filesystem::path(NEWSCASTER_SOURCE_DIR) / "avatars/anna";
}

inline std::vector<float> test_sound(int64_t frames) {
    std::vector<float> sound(static_cast<size_t>(frames * 640));
    for (size_t i = 0; i < sound.size(); ++i) {
        sound[i] = static_cast<float>(0.3 * std::sin(0.06 * static_cast<double>(i)));
    }
    return sound;
}

struct DrawnSession {
    std::vector<Nv12Image> pictures;
    SessionStats stats;
};

inline DrawnSession draw_session(const std::shared_ptr<Engine::Impl>& engine,
                                 const SessionOptions& options, int64_t frames) {
    const auto avatar = std::make_shared<LoadedAvatar>(engine, bundled_avatar());
    DrawnSession drawn;
    SessionCallbacks callbacks;
    callbacks.on_frame = [&](const VideoFramePtr& frame) {
        EXPECT_EQ(frame->index, std::ssize(drawn.pictures));
        const auto pixels = static_cast<size_t>(frame->width) * static_cast<size_t>(frame->height);
        drawn.pictures.push_back({frame->width,
                                  frame->height,
                                  {frame->y, frame->y + pixels},
                                  {frame->uv, frame->uv + pixels / 2}});
        return true;
    };
    LiveSession session(engine, avatar, options, callbacks);
    session.push_audio(test_sound(frames));
    session.close();
    session.wait();
    drawn.stats = session.stats();
    EXPECT_EQ(drawn.stats.frames, frames);
    return drawn;
}

inline int largest_difference(const std::vector<uint8_t>& a, const std::vector<uint8_t>& b) {
    int largest = 0;
    for (size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
    return largest;
}

inline void expect_same_pictures(const std::vector<Nv12Image>& found,
                                 const std::vector<Nv12Image>& wanted, int levels) {
    ASSERT_EQ(found.size(), wanted.size());
    for (size_t i = 0; i < wanted.size(); ++i) {
        SCOPED_TRACE(i);
        ASSERT_EQ(found[i].y.size(), wanted[i].y.size());
        EXPECT_LE(largest_difference(found[i].y, wanted[i].y), levels);
        EXPECT_LE(largest_difference(found[i].uv, wanted[i].uv), levels);
    }
    EXPECT_GT(largest_difference(wanted.front().y, wanted.back().y), 8) << "nothing moves";
}

}  // namespace newscaster::pipeline
