// Sessions under stress, with the bundled pack and avatar: order, count, ends of every kind, races.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "newscaster/engine.h"
#include "newscaster/error.h"

namespace newscaster {
namespace {

using std::chrono::milliseconds;

constexpr int64_t kFrameSamples = 640;  // at the pack's 16 kHz and 25 frames/s

// Syllable-like bursts of two tones.
std::vector<float> voice(int64_t samples) {
    std::vector<float> sound(static_cast<size_t>(samples));
    for (size_t i = 0; i < sound.size(); ++i) {
        const double t = static_cast<double>(i) / 16000.0;
        const double envelope = std::max(0.0, std::sin(25.0 * t));
        sound[i] =
            static_cast<float>(0.3 * envelope * (std::sin(900.0 * t) + std::sin(4300.0 * t)));
    }
    return sound;
}

// FNV-1a of both planes.
uint64_t fingerprint(const VideoFrame& frame) {
    uint64_t hash = 0xcbf29ce484222325;
    const auto add = [&](const uint8_t* plane, int stride, int rows) {
        for (int row = 0; row < rows; ++row) {
            const uint8_t* line = plane + static_cast<ptrdiff_t>(row) * stride;
            for (int x = 0; x < frame.width; ++x) hash = (hash ^ line[x]) * 0x100000001b3;
        }
    };
    add(frame.y, frame.y_stride, frame.height);
    add(frame.uv, frame.uv_stride, frame.height / 2);
    return hash;
}

class SessionTest : public testing::Test {
  protected:
    static void SetUpTestSuite() {
        const std::filesystem::path root = NEWSCASTER_SOURCE_DIR;
        EngineOptions options;
        options.pack = root / "packs/studio";
        options.threads = 2;
        options.frames_in_flight = 2;
        engine = std::make_unique<Engine>(options);
        avatar = engine->load_avatar(root / "avatars/anna");
    }
    static void TearDownTestSuite() {
        avatar.reset();
        engine.reset();
    }

    static std::unique_ptr<Session> open(std::function<bool(const VideoFramePtr&)> on_frame) {
        return engine->open_session(avatar, {}, {.on_frame = std::move(on_frame), .on_motion = {}});
    }

    // Pushes everything in pieces of random size, closes, waits.
    static void play(Session& session, const std::vector<float>& sound, unsigned seed) {
        std::mt19937 random(seed);
        std::span<const float> rest(sound);
        while (!rest.empty()) {
            const size_t piece = std::min<size_t>(rest.size(), 1 + random() % 3000);
            session.push_audio(rest.first(piece));
            rest = rest.subspan(piece);
        }
        session.close();
        session.wait();
    }

    // What a whole session delivers.
    static std::vector<uint64_t> fingerprints(const std::vector<float>& sound, unsigned seed) {
        std::vector<uint64_t> prints;
        const auto session = open([&](const VideoFramePtr& frame) {
            prints.push_back(fingerprint(*frame));
            return true;
        });
        play(*session, sound, seed);
        return prints;
    }

    // Runs `action`; the code of the newscaster::Error it must throw.
    static ErrorCode code_of(const std::function<void()>& action) {
        try {
            action();
        } catch (const Error& error) {
            return error.code();
        }
        ADD_FAILURE() << "nothing was thrown";
        return ErrorCode::runtime;
    }

    static inline std::unique_ptr<Engine> engine;
    static inline AvatarPtr avatar;
};

TEST_F(SessionTest, FramesComeInOrderOnTimeAndCoverTheSound) {
    const auto& info = engine->info();
    for (const int64_t samples : {int64_t{1}, kFrameSamples, kFrameSamples + 1, int64_t{7000}}) {
        std::vector<VideoFramePtr> frames;
        std::vector<int64_t> motions;
        size_t motion_values = 0;
        const auto session =
            engine->open_session(avatar, {},
                                 {.on_frame =
                                      [&](const VideoFramePtr& frame) {
                                          frames.push_back(frame);
                                          return true;
                                      },
                                  .on_motion =
                                      [&](int64_t index, std::span<const float> motion) {
                                          motions.push_back(index);
                                          motion_values = motion.size();
                                      }});
        play(*session, voice(samples), 1);
        const int64_t expected = frames_covering(samples, info.sample_rate_hz, info.fps);
        ASSERT_EQ(static_cast<int64_t>(frames.size()), expected) << samples;
        ASSERT_EQ(motions.size(), frames.size());
        EXPECT_EQ(motion_values, info.motion_channels.size());
        for (int64_t i = 0; i < expected; ++i) {
            const VideoFrame& frame = *frames[static_cast<size_t>(i)];
            EXPECT_EQ(frame.index, i);
            EXPECT_EQ(motions[static_cast<size_t>(i)], i);
            EXPECT_DOUBLE_EQ(frame.timestamp_s, static_cast<double>(i) / 25.0);
            EXPECT_EQ(frame.width, avatar->width());
            EXPECT_EQ(frame.height, avatar->height());
        }
        const SessionStats stats = session->stats();
        EXPECT_EQ(stats.frames, expected);
        EXPECT_GT(stats.time_to_first_frame_s.value_or(0.0), 0.0);
        EXPECT_LE(stats.time_to_first_frame_s.value_or(0.0), stats.wall_s);
    }
}

TEST_F(SessionTest, NoSoundGivesNoFrame) {
    const auto session = open([](const VideoFramePtr&) { return true; });
    session->push_audio({});
    session->close();
    session->close();
    session->wait();
    session->wait();
    EXPECT_EQ(session->stats().frames, 0);
    EXPECT_FALSE(session->stats().time_to_first_frame_s.has_value());
}

TEST_F(SessionTest, TwoAtOnceGiveTheBytesOfOneAlone) {
    const auto first = voice(6 * kFrameSamples);
    auto second = first;
    std::reverse(second.begin(), second.end());
    const auto first_alone = fingerprints(first, 2);
    const auto second_alone = fingerprints(second, 3);
    ASSERT_EQ(first_alone.size(), 6U);
    EXPECT_NE(first_alone, second_alone);

    std::vector<uint64_t> first_together;
    std::vector<uint64_t> second_together;
    {
        const std::jthread other([&] { second_together = fingerprints(second, 4); });
        first_together = fingerprints(first, 5);
    }
    EXPECT_EQ(first_together, first_alone);
    EXPECT_EQ(second_together, second_alone);
}

TEST_F(SessionTest, CancelEndsItAtAnyTime) {
    const auto sound = voice(4 * kFrameSamples);
    std::mt19937 random(6);
    for (int round = 0; round < 12; ++round) {
        int64_t next = 0;
        const auto session = open([&](const VideoFramePtr& frame) {
            EXPECT_EQ(frame->index, next++);
            return true;
        });
        const std::jthread canceller([&, delay = milliseconds(random() % 250)] {
            std::this_thread::sleep_for(delay);
            EXPECT_GE(session->stats().frames, 0);
            session->cancel();
        });
        // The sound has no end: only the cancel gets push_audio out of a full pipeline.
        const auto push_for_ever = [&] {
            while (true) session->push_audio(sound);
        };
        EXPECT_EQ(code_of(push_for_ever), ErrorCode::cancelled);
        EXPECT_EQ(code_of([&] { session->wait(); }), ErrorCode::cancelled);
        EXPECT_EQ(session->stats().frames, next);
    }
}

TEST_F(SessionTest, CallbackEndsItByReturningFalse) {
    int64_t seen = 0;
    const auto session = open([&](const VideoFramePtr&) { return ++seen < 3; });
    const auto sound = voice(40 * kFrameSamples);
    EXPECT_EQ(code_of([&] { play(*session, sound, 7); }), ErrorCode::cancelled);
    EXPECT_EQ(code_of([&] { session->wait(); }), ErrorCode::cancelled);
    EXPECT_EQ(seen, 3);
}

TEST_F(SessionTest, CallbacksExceptionComesOutOfWait) {
    const auto fails_with = [](const std::function<void()>& raise) {
        return open([raise](const VideoFramePtr& frame) {
            if (frame->index == 1) raise();
            return true;
        });
    };
    const auto sound = voice(5 * kFrameSamples);
    try {
        play(*fails_with([] { throw std::runtime_error("camera on fire"); }), sound, 8);
        ADD_FAILURE() << "nothing was thrown";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::runtime);
        EXPECT_STREQ(error.what(), "camera on fire");
        EXPECT_EQ(error.stage(), "deliver");
    }
    const auto full_disk = [] { throw Error(ErrorCode::io, "full"); };
    EXPECT_EQ(code_of([&] { play(*fails_with(full_disk), sound, 9); }), ErrorCode::io);
    const auto number = [] { throw 42; };
    EXPECT_THROW(play(*fails_with(number), sound, 10), int);

    const auto motion_fails = engine->open_session(
        avatar, {},
        {.on_frame = [](const VideoFramePtr&) { return true; },
         .on_motion = [](int64_t, std::span<const float>) { throw std::runtime_error("no"); }});
    EXPECT_EQ(code_of([&] { play(*motion_fails, sound, 11); }), ErrorCode::runtime);
}

TEST_F(SessionTest, DestroyingItMidwayKeepsTheFramesAlreadyGiven) {
    const auto sound = voice(6 * kFrameSamples);
    for (const int delay_ms : {0, 1, 20, 80, 200, 400}) {
        VideoFramePtr last;
        {
            const auto session = open([&](const VideoFramePtr& frame) {
                last = frame;
                return true;
            });
            session->push_audio(sound);
            if (delay_ms % 40 == 0) session->close();
            std::this_thread::sleep_for(milliseconds(delay_ms));
        }
        if (last) {
            EXPECT_NE(fingerprint(*last), 0U);
        }
    }
}

TEST_F(SessionTest, OutlivesEngineAndAvatarHandles) {
    std::atomic<int64_t> frames{0};
    std::unique_ptr<Session> session;
    {
        const Engine copy = *engine;
        const AvatarPtr own =
            copy.load_avatar(std::filesystem::path(NEWSCASTER_SOURCE_DIR) / "avatars/anna");
        session = copy.open_session(own, {},
                                    {.on_frame =
                                         [&](const VideoFramePtr&) {
                                             ++frames;
                                             return true;
                                         },
                                     .on_motion = {}});
    }
    play(*session, voice(kFrameSamples), 12);
    EXPECT_EQ(frames, 1);
}

// Motion of a whole session, one row per frame.
std::vector<std::vector<float>> motion_of(const Engine& engine, const AvatarPtr& avatar,
                                          const SessionOptions& options, int64_t frames) {
    std::vector<std::vector<float>> rows;
    const auto session = engine.open_session(avatar, options,
                                             {.on_frame = [](const VideoFramePtr&) { return true; },
                                              .on_motion =
                                                  [&](int64_t, std::span<const float> row) {
                                                      rows.emplace_back(row.begin(), row.end());
                                                  }});
    session->push_audio(voice(frames * kFrameSamples));
    session->close();
    session->wait();
    return rows;
}

TEST_F(SessionTest, ControlsReachTheMotion) {
    constexpr int64_t kFrames = 12;
    const auto& channels = engine->info().motion_channels;
    const auto yaw =
        static_cast<size_t>(std::find(channels.begin(), channels.end(), "yaw") - channels.begin());
    ASSERT_LT(yaw, channels.size());
    SessionOptions turned;
    turned.controls =
        parse_controls(R"({"frames": [{"first": 5, "pose_offset_deg": {"yaw": 8}}]})", "test");
    const auto plain_rows = motion_of(*engine, avatar, {}, kFrames);
    const auto turned_rows = motion_of(*engine, avatar, turned, kFrames);
    ASSERT_EQ(plain_rows.size(), static_cast<size_t>(kFrames));
    ASSERT_EQ(turned_rows.size(), plain_rows.size());
    for (size_t i = 0; i < plain_rows.size(); ++i) {
        EXPECT_NEAR(turned_rows[i][yaw] - plain_rows[i][yaw], i < 5 ? 0.0 : 8.0, 1e-4) << i;
    }
    turned.controls = parse_controls(R"({"emotion": "bored"})", "test");
    EXPECT_EQ(code_of([&] { (void)motion_of(*engine, avatar, turned, 1); }), ErrorCode::bad_input);
}

TEST_F(SessionTest, OnlineFusionAndAnotherCharacter) {
    constexpr int64_t kFrames = 100;  // more than one window
    SessionOptions online;
    online.controls = parse_controls(R"({"fusion": "online"})", "test");
    const auto offline_rows = motion_of(*engine, avatar, {}, kFrames);
    const auto online_rows = motion_of(*engine, avatar, online, kFrames);
    ASSERT_EQ(online_rows.size(), static_cast<size_t>(kFrames));
    EXPECT_NE(online_rows, offline_rows);
    EXPECT_EQ(online_rows, motion_of(*engine, avatar, online, kFrames));

    SessionOptions borrowed;
    borrowed.character =
        engine->load_avatar(std::filesystem::path(NEWSCASTER_SOURCE_DIR) / "avatars/marcus");
    EXPECT_EQ(motion_of(*engine, avatar, borrowed, 1).size(), 1U);
    EngineOptions others;
    others.pack = std::filesystem::path(NEWSCASTER_SOURCE_DIR) / "packs/studio";
    const Engine other(others);
    EXPECT_EQ(code_of([&] {
                  (void)motion_of(other,
                                  other.load_avatar(std::filesystem::path(NEWSCASTER_SOURCE_DIR) /
                                                    "avatars/anna"),
                                  borrowed, 1);
              }),
              ErrorCode::bad_input);
}

TEST_F(SessionTest, RefusesBadUse) {
    const auto accept = [](const VideoFramePtr&) { return true; };
    EXPECT_EQ(code_of([&] { (void)open({}); }), ErrorCode::bad_input);
    EXPECT_EQ(code_of([&] {
                  (void)engine->open_session(nullptr, {}, {accept, {}});
              }),
              ErrorCode::bad_input);

    std::atomic<int64_t> frames{0};
    const auto session = open([&](const VideoFramePtr&) {
        ++frames;
        return true;
    });
    auto sound = voice(kFrameSamples);
    for (const float bad :
         {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
          -std::numeric_limits<float>::infinity()}) {
        sound[5] = bad;
        EXPECT_EQ(code_of([&] { session->push_audio(sound); }), ErrorCode::bad_input);
    }
    // A refused piece leaves no trace: the session goes on with what is pushed instead.
    session->push_audio(voice(kFrameSamples));
    session->close();
    EXPECT_EQ(code_of([&] { session->push_audio(voice(1)); }), ErrorCode::bad_input);
    session->wait();
    EXPECT_EQ(frames, 1);
}

}  // namespace
}  // namespace newscaster
