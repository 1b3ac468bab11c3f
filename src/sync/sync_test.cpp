#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "core/error_test_util.h"
#include "sync/closures.h"
#include "sync/offset.h"
#include "sync/speech_track.h"

namespace newscaster::sync {
namespace {

using testing::HasSubstr;
using testing_support::error_of;

const std::vector<std::string> kPhones{"sil", "p", "b", "m", "aa", "t"};

TEST(PhoneReader, MixesLipsByProbability) {
    PhoneReader reader(kPhones, "x");
    const float none = -100.0F;
    reader.push(std::vector<float>{9, none, none, none, none, none});  // silence
    reader.push(std::vector<float>{none, none, none, none, 0, none,    // aa
                                   none, 3, 3, 3, none, none,          // p, b or m
                                   none, none, none, none, 5, 5});     // aa or t
    const SpeechTrack& track = reader.track();
    ASSERT_EQ(track.frames(), 4U);
    EXPECT_NEAR(track.silence[0], 1.0, 1e-9);
    EXPECT_NEAR(track.opening[0], 0.0, 1e-9);
    EXPECT_NEAR(track.opening[1], 1.0, 1e-9);
    EXPECT_NEAR(track.bilabial[2], 1.0, 1e-9);
    EXPECT_NEAR(track.opening[2], 0.0, 1e-9);
    EXPECT_NEAR(track.opening[3], (1.0 + 0.25) / 2.0, 1e-9);
    EXPECT_NEAR(track.bilabial[3], 0.0, 1e-9);
}

TEST(PhoneReader, RefusesPhonesAndRowsItCannotRead) {
    EXPECT_THAT(error_of([] { PhoneReader({"sil", "p", "b"}, "x"); }), HasSubstr("\"m\""));
    EXPECT_THAT(error_of([] {
                    PhoneReader({"sil", "p", "b", "m", "qq"}, "x");
                }),
                HasSubstr("\"qq\""));
    PhoneReader reader(kPhones, "x");
    EXPECT_THROW(reader.push(std::vector<float>(7)), Error);
    EXPECT_THROW(reader.push(std::vector<float>(6, std::numeric_limits<float>::infinity())), Error);
    EXPECT_EQ(reader.track().frames(), 0U);
}

// Smooth noise: what lips do, with a correlation time of a few frames.
std::vector<double> random_track(size_t frames, unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<double> noise;
    std::vector<double> raw(frames + 2);
    for (double& x : raw) x = noise(random);
    std::vector<double> track(frames);
    for (size_t i = 0; i < frames; ++i) track[i] = raw[i] + 2.0 * raw[i + 1] + raw[i + 2];
    return track;
}

std::vector<double> late(const std::vector<double>& track, int frames) {
    std::vector<double> out(track.size());
    const auto last = static_cast<int>(track.size()) - 1;
    for (int i = 0; i <= last; ++i) {
        out[static_cast<size_t>(i)] = track[static_cast<size_t>(std::clamp(i - frames, 0, last))];
    }
    return out;
}

TEST(Offset, FollowsTheShift) {
    for (unsigned seed = 0; seed < 5; ++seed) {
        const auto speech = random_track(250, seed);
        const auto noise = random_track(250, 100 + seed);
        for (int shift = -12; shift <= 12; ++shift) {
            auto mouth = late(speech, shift);
            // Unit, resting value, a slow drift and other movements do not matter.
            for (size_t i = 0; i < mouth.size(); ++i) {
                mouth[i] = 40.0 * mouth[i] + 7.0 + static_cast<double>(i) + 20.0 * noise[i];
            }
            const Offset offset = find_offset(speech, mouth, 15);
            ASSERT_TRUE(offset.frames) << seed << " " << shift;
            EXPECT_NEAR(*offset.frames, shift, 0.2) << seed;
            EXPECT_EQ(offset.correlations.size(), 31U);
            EXPECT_GT(offset.peak, offset.rival + kLeastMargin);
        }
    }
}

TEST(Offset, NothingIsFoundWhereNothingFits) {
    const auto speech = random_track(250, 1);
    const auto still = find_offset(speech, std::vector<double>(250, 3.5), 15);
    EXPECT_FALSE(still.frames);
    EXPECT_FALSE(still.correlations.front());
    const auto other = find_offset(speech, random_track(250, 2), 15);
    EXPECT_FALSE(other.frames) << *other.frames << " " << other.peak;
    // Outside of what is searched: the largest correlation lies at the end.
    EXPECT_FALSE(find_offset(speech, late(speech, 16), 15).frames);
}

TEST(Offset, CutsTheLongerTrackAndRefusesShortOnes) {
    const auto speech = random_track(300, 4);
    const std::vector<double> half(speech.begin(), speech.begin() + 150);
    EXPECT_NEAR(find_offset(speech, half, 10).frames.value(), 0.0, 1e-9);
    EXPECT_NEAR(find_offset(half, speech, 10).frames.value(), 0.0, 1e-9);
    EXPECT_EQ(least_frames(15), 55U);
    const std::vector<double> few(speech.begin(), speech.begin() + 54);
    EXPECT_THAT(error_of([&] { (void)find_offset(speech, few, 15); }, ErrorCode::bad_input),
                HasSubstr("found 54 frames with sound and picture, wanted at least 55"));
}

TEST(Resampled, TakesTheMiddlesOfFrames) {
    MouthTrack track{.fps = 50.0, .opening = {}};
    for (int i = 0; i < 100; ++i) track.opening.push_back((i + 0.5) / 50.0);  // seconds
    for (const double fps : {25.0, 30.0, 50.0, 24000.0 / 1001.0}) {
        const auto out = resampled(track, fps);
        EXPECT_EQ(out.size(), static_cast<size_t>(std::lround(2.0 * fps)));
        for (size_t i = 1; i + 1 < out.size(); ++i) {
            EXPECT_NEAR(out[i], (static_cast<double>(i) + 0.5) / fps, 1e-12) << fps;
        }
    }
}

// Speech with closures at the given frames, silence from 200 on, and a mouth to match.
struct Scene {
    SpeechTrack speech;
    std::vector<double> mouth;
};

Scene scene(const std::vector<size_t>& closures, size_t frames = 220) {
    Scene scene;
    for (size_t i = 0; i < frames; ++i) {
        const bool closed = std::ranges::find(closures, i) != closures.end();
        const bool silent = i >= 200;
        scene.speech.bilabial.push_back(closed ? 0.9 : 0.0);
        scene.speech.silence.push_back(silent ? 0.9 : 0.0);
        scene.speech.opening.push_back(closed || silent ? 0.0 : 0.5);
        scene.mouth.push_back(closed || silent ? 0.0 : 1.0 + 0.1 * std::sin(0.7 * double(i)));
    }
    return scene;
}

TEST(Closures, CountsWhatIsMetAndWhatIsNot) {
    const auto whole = scene({20, 21, 60, 100, 101, 102, 150});
    const auto all = count_closures(whole.speech, whole.mouth, true);
    EXPECT_EQ(all.spoken, 4);
    EXPECT_EQ(all.met, 4);
    EXPECT_EQ(all.seen, 4);
    EXPECT_EQ(all.right, 4);
    EXPECT_NEAR(all.chance, (4.0 + 3.0 + 5.0 + 3.0 + 1.0) / 200.0, 1e-9);

    auto lost = whole;
    lost.mouth[60] = 0.5;  // no longer closed
    lost.mouth[80] = 0.0;  // closed at nothing
    const auto found = count_closures(lost.speech, lost.mouth, true);
    EXPECT_EQ(found.met, 3);
    EXPECT_EQ(found.spoken, 4);
    EXPECT_EQ(found.seen, 4);
    EXPECT_EQ(found.right, 3);
}

TEST(Closures, AllowOneFrame) {
    const auto spoken = scene({50, 100, 150});
    const auto one = count_closures(spoken.speech, scene({51, 99, 150}).mouth, true);
    EXPECT_EQ(one.met, 3);
    EXPECT_EQ(one.right, 3);
    const auto two = count_closures(spoken.speech, scene({52, 98, 150}).mouth, true);
    EXPECT_EQ(two.met, 1);
    EXPECT_EQ(two.seen, 3);
    EXPECT_EQ(two.right, 1);
}

TEST(Closures, PicturesMayDrift) {
    auto drifting = scene({20, 60, 100, 150});
    for (size_t i = 0; i < drifting.mouth.size(); ++i) {
        drifting.mouth[i] += 5.0 + 0.005 * static_cast<double>(i);
    }
    EXPECT_EQ(count_closures(drifting.speech, drifting.mouth, false).met, 4);
    EXPECT_EQ(count_closures(drifting.speech, drifting.mouth, true).met, 0);
}

TEST(Closures, SilenceHasNone) {
    auto silent = scene({});
    std::ranges::fill(silent.speech.silence, 1.0);
    const auto found = count_closures(silent.speech, silent.mouth, true);
    EXPECT_EQ(found.spoken + found.seen, 0);
    EXPECT_EQ(found.chance, 0.0);
}

}  // namespace
}  // namespace newscaster::sync
