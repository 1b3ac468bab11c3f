#include "media/channel_mixer.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "media/test_support.h"

namespace newscaster::media {
namespace {

using testing::interleave;
using testing::noise;
using testing::rms;

constexpr int kRate = 48000;
constexpr size_t kSecond = kRate;

std::vector<float> mix(const std::vector<std::vector<float>>& channels, int rate = kRate) {
    ChannelMixer mixer(static_cast<int>(channels.size()), rate);
    std::vector<float> mono;
    mixer.push(interleave(channels), mono);
    mixer.finish(mono);
    return mono;
}

std::vector<float> negated(std::vector<float> wave) {
    for (float& value : wave) value = -value;
    return wave;
}

const std::vector<float> kSilence(kSecond, 0.0F);

TEST(ChannelMixer, OneChannelPassesBitForBit) {
    const auto voice = noise(kSecond + 7, 1);
    EXPECT_EQ(mix({voice}), voice);
}

TEST(ChannelMixer, EqualChannelsPassBitForBit) {
    const auto voice = noise(kSecond + 7, 2);
    EXPECT_EQ(mix({voice, voice}), voice);
}

TEST(ChannelMixer, UnrelatedChannelsGiveTheirMean) {
    const auto left = noise(kSecond, 3);
    const auto right = noise(kSecond, 4);
    const auto mono = mix({left, right});
    ASSERT_EQ(mono.size(), left.size());
    for (size_t i = 0; i < mono.size(); ++i) {
        ASSERT_NEAR(mono[i], (left[i] + right[i]) / 2, 1e-6) << i;
    }
}

TEST(ChannelMixer, AntiphaseFollowsOneChannelFromTheFirstSample) {
    const auto voice = noise(kSecond, 5);
    EXPECT_EQ(mix({voice, negated(voice)}), voice);
}

TEST(ChannelMixer, SpeechOnOneChannelKeepsItsLevel) {
    const auto voice = noise(kSecond, 6);
    EXPECT_EQ(mix({voice, kSilence}), voice);
    EXPECT_EQ(mix({kSilence, voice}), voice);
    EXPECT_EQ(mix({kSilence, kSilence, voice, kSilence, kSilence, kSilence}), voice);
    EXPECT_EQ(mix({kSilence, kSilence, kSilence, kSilence, kSilence, kSilence, kSilence, voice}),
              voice);
}

TEST(ChannelMixer, FollowsSpeakersThatTakeTurns) {
    // Guest left for one second, host right for the next.
    auto left = noise(kSecond, 7);
    auto right = kSilence;
    left.insert(left.end(), kSecond, 0.0F);
    const auto host = noise(kSecond, 8);
    right.insert(right.end(), host.begin(), host.end());
    const auto mono = mix({left, right});
    ASSERT_EQ(mono.size(), 2 * kSecond);
    // Once the change was noticed (well within half a second) each is heard at full level.
    const std::vector<float> settled(mono.begin() + 3 * kSecond / 2, mono.end());
    EXPECT_NEAR(rms(settled), rms(host), 0.02 * rms(host));
    const std::vector<float> first(mono.begin(), mono.begin() + kSecond);
    EXPECT_NEAR(rms(first), rms(host), 0.02 * rms(host));
    // Never quieter than what the plain mean would give.
    const size_t block = kRate / 20;
    for (size_t start = 0; start + block <= mono.size(); start += block) {
        const std::vector<float> part(mono.begin() + start, mono.begin() + start + block);
        EXPECT_GT(rms(part), 0.4 * rms(host)) << start;
    }
}

TEST(ChannelMixer, ChangesAreFadedNotSwitched) {
    // In phase for a second, then antiphase: a steady tone must not step.
    const auto tone = testing::sine(100.0, kRate, 2 * kSecond);
    auto other = tone;
    for (size_t i = kSecond; i < other.size(); ++i) other[i] = -other[i];
    const auto mono = mix({tone, other});
    float largest = 0.0F;
    for (size_t i = 1; i < mono.size(); ++i) {
        largest = std::max(largest, std::abs(mono[i] - mono[i - 1]));
    }
    const double slope = 0.5 * 2.0 * std::numbers::pi * 100.0 / kRate;
    EXPECT_LT(largest, 3.0 * slope);
    const std::vector<float> settled(mono.end() - kSecond / 2, mono.end());
    EXPECT_NEAR(rms(settled), rms(tone), 0.01);
}

TEST(ChannelMixer, CuttingOfTheInputMakesNoDifference) {
    const auto left = noise(20011, 9);
    const auto right = noise(20011, 10, 0.02F);
    const auto whole = mix({left, right}, 8000);
    const auto input = interleave<float>({left, right});
    for (const size_t piece : {1UL, 3UL, 160UL, 161UL, 4096UL}) {
        ChannelMixer mixer(2, 8000);
        std::vector<float> mono;
        for (size_t at = 0; at < input.size(); at += 2 * piece) {
            const size_t count = std::min(2 * piece, input.size() - at);
            mixer.push(std::span(input).subspan(at, count), mono);
        }
        mixer.finish(mono);
        EXPECT_EQ(mono, whole) << piece;
    }
}

TEST(ChannelMixer, EveryLengthComesOutWhole) {
    for (const size_t length : {0UL, 1UL, 159UL, 160UL, 161UL, 320UL, 1000UL}) {
        const auto voice = noise(length, 11);
        EXPECT_EQ(mix({voice, negated(voice)}, 8000).size(), length);
    }
}

}  // namespace
}  // namespace newscaster::media
