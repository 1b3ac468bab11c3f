// Sessions with a cadence, with the bundled pack and avatar: the same bytes from any number of
// workers, keyframes as without a cadence, ends of every kind.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <map>
#include <thread>
#include <vector>

#include "newscaster/engine.h"
#include "newscaster/error.h"

namespace newscaster {
namespace {

constexpr int64_t kFrameSamples = 640;  // at the pack's 16 kHz and 25 frames/s

// Syllables with pauses, so that the sound has onsets.
std::vector<float> voice(int64_t frames) {
    std::vector<float> sound(static_cast<size_t>(frames * kFrameSamples));
    for (size_t i = 0; i < sound.size(); ++i) {
        const double t = static_cast<double>(i) / 16000.0;
        const double envelope = std::max(0.0, std::sin(20.0 * t));
        sound[i] =
            static_cast<float>(0.3 * envelope * (std::sin(900.0 * t) + std::sin(4300.0 * t)));
    }
    return sound;
}

using Picture = std::vector<uint8_t>;

Picture picture_of(const VideoFrame& frame) {
    Picture pixels;
    for (int row = 0; row < frame.height; ++row) {
        const uint8_t* line = frame.y + static_cast<ptrdiff_t>(row) * frame.y_stride;
        pixels.insert(pixels.end(), line, line + frame.width);
    }
    for (int row = 0; row < frame.height / 2; ++row) {
        const uint8_t* line = frame.uv + static_cast<ptrdiff_t>(row) * frame.uv_stride;
        pixels.insert(pixels.end(), line, line + frame.width);
    }
    return pixels;
}

double psnr(const Picture& a, const Picture& b) {
    double sum = 0.0;
    for (size_t i = 0; i < a.size(); ++i)
        sum += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
    return 10.0 * std::log10(255.0 * 255.0 * static_cast<double>(a.size()) / std::max(sum, 1.0));
}

class CadenceSessionTest : public testing::Test {
  protected:
    struct Result {
        std::vector<Picture> pictures;
        std::vector<CadenceFrame> plan;
        SessionStats stats;
    };

    static Engine make_engine(int workers) {
        EngineOptions options;
        options.pack = std::filesystem::path(NEWSCASTER_SOURCE_DIR) / "packs/studio";
        options.precision = "f32";
        options.threads = 1;
        options.frames_in_flight = workers;
        return Engine(options);
    }
    static SessionOptions with_stride(int stride, StrideMode mode) {
        SessionOptions options;
        options.cadence.stride = stride;
        options.cadence.mode = mode;
        return options;
    }

    static Result draw(const Engine& engine, const SessionOptions& options, int64_t frames) {
        const auto avatar =
            engine.load_avatar(std::filesystem::path(NEWSCASTER_SOURCE_DIR) / "avatars/anna");
        Result result;
        SessionCallbacks callbacks;
        callbacks.on_frame = [&](const VideoFramePtr& frame) {
            EXPECT_EQ(frame->index, static_cast<int64_t>(result.pictures.size()));
            result.pictures.push_back(picture_of(*frame));
            return true;
        };
        callbacks.on_cadence = [&](const CadenceFrame& frame) { result.plan.push_back(frame); };
        const auto session = engine.open_session(avatar, options, std::move(callbacks));
        session->push_audio(voice(frames));
        session->close();
        session->wait();
        result.stats = session->stats();
        return result;
    }
};

TEST_F(CadenceSessionTest, KeyframesAreExactAndTheOthersClose) {
    constexpr int64_t kFrames = 14;
    const Engine one = make_engine(1);
    const Engine three = make_engine(3);
    const auto dense = draw(one, with_stride(1, StrideMode::warp), kFrames);
    ASSERT_EQ(dense.pictures.size(), 14U);
    EXPECT_EQ(dense.stats.in_between_frames, 0);
    const std::map<StrideMode, double> floor_db{{StrideMode::warp, 50.0},
                                                {StrideMode::frame, 40.0}};
    for (const int stride : {0, 2, 3}) {
        for (const auto mode : {StrideMode::warp, StrideMode::frame}) {
            const auto drawn = draw(one, with_stride(stride, mode), kFrames);
            ASSERT_EQ(drawn.pictures.size(), 14U);
            ASSERT_EQ(drawn.plan.size(), 14U);
            int64_t between = 0;
            for (size_t i = 0; i < drawn.plan.size(); ++i) {
                EXPECT_EQ(drawn.plan[i].index, static_cast<int64_t>(i));
                if (drawn.plan[i].neural) {
                    EXPECT_EQ(drawn.pictures[i], dense.pictures[i]) << i;
                } else {
                    ++between;
                    EXPECT_GT(psnr(drawn.pictures[i], dense.pictures[i]), floor_db.at(mode)) << i;
                }
            }
            EXPECT_GT(between, 0);
            EXPECT_EQ(drawn.stats.in_between_frames, between);
            const auto parallel = draw(three, with_stride(stride, mode), kFrames);
            EXPECT_EQ(parallel.pictures, drawn.pictures) << stride;
        }
    }
}

TEST_F(CadenceSessionTest, ShortestSoundsAndNoSound) {
    const Engine engine = make_engine(2);
    for (const int64_t frames : {0, 1, 2, 3}) {
        const auto drawn = draw(engine, with_stride(3, StrideMode::warp), frames);
        EXPECT_EQ(static_cast<int64_t>(drawn.pictures.size()), frames);
        EXPECT_EQ(static_cast<int64_t>(drawn.plan.size()), frames);
    }
}

TEST_F(CadenceSessionTest, CancelAndFailingCallbacksEndIt) {
    const Engine engine = make_engine(2);
    const auto avatar =
        engine.load_avatar(std::filesystem::path(NEWSCASTER_SOURCE_DIR) / "avatars/anna");
    const auto sound = voice(8);
    for (const int delay_ms : {0, 30, 150, 400}) {
        SessionCallbacks callbacks;
        callbacks.on_frame = [](const VideoFramePtr&) { return true; };
        const auto session =
            engine.open_session(avatar, with_stride(0, StrideMode::frame), std::move(callbacks));
        const std::jthread canceller([&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(delay_ms));
            session->cancel();
        });
        EXPECT_THROW(while (true) session->push_audio(sound), Error);
        EXPECT_THROW(session->wait(), Error);
    }
    SessionCallbacks failing;
    failing.on_frame = [](const VideoFramePtr&) { return true; };
    failing.on_cadence = [](const CadenceFrame& frame) {
        if (frame.index == 2) throw 42;
    };
    const auto session =
        engine.open_session(avatar, with_stride(2, StrideMode::warp), std::move(failing));
    session->push_audio(sound);
    session->close();
    EXPECT_THROW(session->wait(), int);
}

TEST_F(CadenceSessionTest, RefusesAStrideOutOfRange) {
    const Engine engine = make_engine(1);
    const auto avatar =
        engine.load_avatar(std::filesystem::path(NEWSCASTER_SOURCE_DIR) / "avatars/anna");
    SessionCallbacks callbacks;
    callbacks.on_frame = [](const VideoFramePtr&) { return true; };
    EXPECT_THROW((void)engine.open_session(avatar, with_stride(4, StrideMode::warp), callbacks),
                 Error);
}

}  // namespace
}  // namespace newscaster
