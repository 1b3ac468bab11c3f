// Smoother head motion in sessions: a stream gives what a file gives, at both ends too, with every
// stride and mode.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <vector>

#include "newscaster/engine.h"

namespace newscaster {
namespace {

constexpr size_t kFrameSamples = 640;  // at the pack's 16 kHz and 25 frames/s
// The pack's layout: scale, three angles and a translation, then 52 blendshapes.
constexpr size_t kPoseBegin = 1;
constexpr size_t kPoseEnd = 7;

using Rows = std::vector<std::vector<float>>;

std::vector<float> voice(size_t frames) {
    std::vector<float> sound(frames * kFrameSamples);
    for (size_t i = 0; i < sound.size(); ++i) {
        const double t = static_cast<double>(i) / 16000.0;
        sound[i] = static_cast<float>(0.3 * std::max(0.0, std::sin(20.0 * t)) *
                                      (std::sin(900.0 * t) + std::sin(4300.0 * t)));
    }
    return sound;
}

class SmoothingSession : public testing::Test {
  protected:
    // Rows of a session whose sound comes in pieces of `piece` samples.
    Rows rows(const SessionOptions& options, size_t frames, size_t piece) {
        Rows rows;
        SessionCallbacks callbacks;
        int64_t drawn = 0;
        callbacks.on_frame = [&](const VideoFramePtr&) {
            ++drawn;
            return true;
        };
        callbacks.on_motion = [&](int64_t frame, std::span<const float> row) {
            EXPECT_EQ(frame, static_cast<int64_t>(rows.size()));
            rows.emplace_back(row.begin(), row.end());
        };
        const auto session = engine_.open_session(avatar_, options, std::move(callbacks));
        const auto sound = voice(frames);
        for (size_t i = 0; i < sound.size(); i += piece) {
            session->push_audio(std::span(sound).subspan(i, std::min(piece, sound.size() - i)));
        }
        session->close();
        session->wait();
        EXPECT_EQ(rows.size(), frames);
        EXPECT_EQ(drawn, static_cast<int64_t>(frames));
        return rows;
    }

    static EngineOptions engine_options() {
        EngineOptions options;
        options.pack = std::filesystem::path(NEWSCASTER_SOURCE_DIR) / "packs/studio";
        options.precision = "f32";
        options.threads = 1;
        options.frames_in_flight = 2;
        return options;
    }

    const Engine engine_{engine_options()};
    const AvatarPtr avatar_ =
        engine_.load_avatar(std::filesystem::path(NEWSCASTER_SOURCE_DIR) / "avatars/anna");
};

TEST_F(SmoothingSession, StreamsAndFilesAgreeWithEveryStrideAndMode) {
    constexpr size_t kFrames = 9;
    SessionOptions options;
    const Rows given = rows(options, kFrames, kFrames * kFrameSamples);
    options.smooth_pose = true;
    const Rows wanted = rows(options, kFrames, kFrames * kFrameSamples);
    ASSERT_EQ(wanted.size(), kFrames);
    for (size_t i = 0; i < kFrames; ++i) {
        for (size_t k = 0; k < wanted[i].size(); ++k) {
            if (k < kPoseBegin || k >= kPoseEnd) {
                EXPECT_EQ(wanted[i][k], given[i][k]) << i << " " << k;
            } else if (i >= 2 && i + 2 < kFrames) {
                constexpr std::array<double, 5> kWeights{-3.0, 12.0, 17.0, 12.0, -3.0};
                double sum = 0.0;
                for (size_t w = 0; w < kWeights.size(); ++w) {
                    sum += kWeights.at(w) * static_cast<double>(given[i + w - 2][k]);
                }
                EXPECT_NEAR(wanted[i][k], sum / 35.0, 1e-5) << i << " " << k;
            }
        }
    }
    EXPECT_NE(wanted, given);
    for (const int stride : {1, 2, 3, 0}) {
        for (const auto mode : {StrideMode::warp, StrideMode::frame}) {
            options.cadence.stride = stride;
            options.cadence.mode = mode;
            EXPECT_EQ(rows(options, kFrames, 777), wanted) << stride;
        }
    }
}

TEST_F(SmoothingSession, ShortestSounds) {
    SessionOptions options;
    options.smooth_pose = true;
    for (const size_t frames : {0U, 1U, 4U, 5U, 6U}) {
        EXPECT_EQ(rows(options, frames, 333), rows(options, frames, 6 * kFrameSamples));
    }
}

}  // namespace
}  // namespace newscaster
