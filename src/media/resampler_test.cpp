#include "media/resampler.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "media/test_support.h"
#include "newscaster/error.h"

namespace newscaster::media {
namespace {

using testing::noise;
using testing::sine;

std::vector<float> resample(const std::vector<float>& input, int64_t from, int64_t to, size_t piece,
                            int channels = 1) {
    Resampler resampler(from, to, channels);
    std::vector<float> out;
    for (size_t at = 0; at < input.size(); at += piece) {
        resampler.push(std::span(input).subspan(at, std::min(piece, input.size() - at)), out);
    }
    resampler.finish(out);
    return out;
}

class ResamplerRates : public ::testing::TestWithParam<int> {};

TEST_P(ResamplerRates, LengthIsExactForEveryLength) {
    const int64_t from = GetParam();
    for (const int64_t length :
         {1, 2, 3, 7, 100, 159, 160, 161, 441, 639, 640, 641, 4095, 4097, 10007, 44101, 96001}) {
        const auto out = resample(noise(static_cast<size_t>(length), 1), from, 16000, 1024);
        EXPECT_EQ(static_cast<int64_t>(out.size()), (length * 16000 + from - 1) / from) << length;
    }
}

TEST_P(ResamplerRates, SineStaysInPlace) {
    const int from = GetParam();
    const auto out = resample(sine(440.0, from, static_cast<size_t>(from)), from, 16000, 999);
    const auto wanted = sine(440.0, 16000, 16000);
    ASSERT_EQ(out.size(), wanted.size());
    // Away from the ends, where the filter sees the edge of the sound.
    for (size_t i = 800; i < wanted.size() - 800; ++i) ASSERT_NEAR(out[i], wanted[i], 1e-4) << i;
}

TEST_P(ResamplerRates, ImpulseStaysInPlace) {
    const int from = GetParam();
    std::vector<float> input(static_cast<size_t>(from), 0.0F);
    const int impulse_at = from / 2;
    input[static_cast<size_t>(impulse_at)] = 1.0F;
    const auto out = resample(input, from, 16000, 512);
    const auto peak = std::max_element(out.begin(), out.end()) - out.begin();
    EXPECT_NEAR(static_cast<double>(peak), impulse_at * 16000.0 / from, 0.51);
}

TEST_P(ResamplerRates, CuttingOfTheInputMakesNoDifference) {
    const auto input = noise(20003, 2);
    const auto whole = resample(input, GetParam(), 16000, input.size());
    EXPECT_EQ(resample(input, GetParam(), 16000, 1), whole);
    EXPECT_EQ(resample(input, GetParam(), 16000, 4096), whole);
}

INSTANTIATE_TEST_SUITE_P(All, ResamplerRates,
                         ::testing::Values(8000, 11025, 16000, 22050, 32000, 44100, 48000, 96000,
                                           192000));

TEST(Resampler, EqualRatesPassBitForBit) {
    const auto input = noise(5000, 3);
    EXPECT_EQ(resample(input, 16000, 16000, 333), input);
}

TEST(Resampler, ChannelsStayApart) {
    const auto left = sine(440.0, 192000, 192000);
    const std::vector<float> right(left.size(), 0.0F);
    const auto out = resample(testing::interleave<float>({left, right}), 192000, 96000, 2000, 2);
    ASSERT_EQ(out.size(), 2U * 96000U);
    double left_energy = 0.0;
    for (size_t i = 0; i < out.size(); i += 2) {
        left_energy += static_cast<double>(out[i]) * out[i];
        ASSERT_EQ(out[i + 1], 0.0F);
    }
    EXPECT_NEAR(left_energy / 96000, 0.125, 1e-3);
}

TEST(Resampler, EmptyPiecesAndEmptySound) {
    Resampler resampler(48000, 16000);
    std::vector<float> out;
    resampler.push({}, out);
    resampler.push(noise(480, 4), out);
    resampler.push({}, out);
    resampler.finish(out);
    EXPECT_EQ(out.size(), 160U);
    EXPECT_TRUE(resample({}, 48000, 16000, 1).empty());
}

TEST(Resampler, RefusesRatesThatAreNotPositive) {
    EXPECT_THROW(Resampler(0, 16000), Error);
    EXPECT_THROW(Resampler(16000, -1), Error);
}

}  // namespace
}  // namespace newscaster::media
