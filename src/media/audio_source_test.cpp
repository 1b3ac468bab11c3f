#include "media/audio_source.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

extern "C" {
#include <libavcodec/packet.h>
#include <libavutil/frame.h>
}

#include <cmath>
#include <limits>

#include "media/test_support.h"
#include "newscaster/error.h"

namespace newscaster::media {
namespace {

using testing::ffmpeg;
using ::testing::HasSubstr;
using testing::interleave;
using testing::noise;
using testing::rms;
using testing::ScratchFolder;
using testing::sine;
using testing::to_int16;
using testing::write_bytes;
using testing::write_wav;

struct Whole {
    AudioFormat format;
    int64_t source_samples = 0;
    std::vector<float> mono;
};

Whole read_all(const std::string& path) {
    const auto source = AudioSource::open(path, {});
    Whole whole{source->format(), 0, {}};
    while (auto piece = source->read()) {
        whole.mono.insert(whole.mono.end(), piece->mono.begin(), piece->mono.end());
    }
    whole.source_samples = source->total_source_samples();
    return whole;
}

// Opens and reads; the error, which must come.
Error error_of(const std::string& path) {
    try {
        static_cast<void>(read_all(path));
    } catch (const Error& error) {
        EXPECT_THAT(error.what(), Not(HasSubstr("\n")));
        EXPECT_THAT(error.what(), HasSubstr(path));
        return error;
    }
    ADD_FAILURE() << path << " was accepted";
    return {ErrorCode::runtime, ""};
}

class AudioSourceTest : public ::testing::Test {
  protected:
    ScratchFolder scratch_;
};

TEST_F(AudioSourceTest, EqualRateIsBitExact) {
    const auto wave = to_int16(noise(12345, 1));
    write_wav(scratch_.file("a.wav"), 16000, 1, wave);
    const auto mono = read_mono(scratch_.file("a.wav"), 16000);
    ASSERT_EQ(mono.size(), wave.size());
    for (size_t i = 0; i < wave.size(); ++i) ASSERT_EQ(mono[i], wave[i] / 32768.0F) << i;
}

TEST_F(AudioSourceTest, EveryShortLengthIsExact) {
    for (const int rate : {8000, 16000, 44100, 192000}) {
        for (const size_t length : {1UL, 160UL, 639UL, 640UL, 641UL, 6481UL}) {
            write_wav(scratch_.file("a.wav"), rate, 2, to_int16(noise(2 * length, 2)));
            const Whole whole = read_all(scratch_.file("a.wav"));
            EXPECT_EQ(whole.source_samples, static_cast<int64_t>(length));
            EXPECT_EQ(whole.mono.size(),
                      (length * 16000 + static_cast<size_t>(rate) - 1) / static_cast<size_t>(rate));
        }
    }
}

TEST_F(AudioSourceTest, NoSamplesIsRefusedWhenOpening) {
    write_wav<int16_t>(scratch_.file("a.wav"), 16000, 1, {});
    EXPECT_THROW(static_cast<void>(AudioSource::open(scratch_.file("a.wav"), {})), Error);
    const Error error = error_of(scratch_.file("a.wav"));
    EXPECT_EQ(error.code(), ErrorCode::bad_input);
    EXPECT_THAT(error.what(), HasSubstr("holds no samples"));
}

class AudioCodecs : public ::testing::TestWithParam<const char*> {};

TEST_P(AudioCodecs, GiveTheSameSpeech) {
    const ScratchFolder scratch;
    write_wav(scratch.file("a.wav"), 16000, 1, to_int16(sine(440.0, 16000, 16000)));
    ffmpeg("-i " + scratch.file("a.wav") + " -c:a " + GetParam() + " " + scratch.file("b.wav"));
    const Whole whole = read_all(scratch.file("b.wav"));
    EXPECT_EQ(whole.format.codec, GetParam());
    EXPECT_EQ(whole.format.sample_rate_hz, 16000);
    const auto wanted = sine(440.0, 16000, 16000);
    ASSERT_GE(whole.mono.size(), wanted.size());
    double error = 0.0;
    for (size_t i = 0; i < wanted.size(); ++i) {
        error += std::pow(static_cast<double>(whole.mono[i]) - wanted[i], 2);
    }
    EXPECT_LT(std::sqrt(error / 16000), 0.02);  // the coarsest (8 bit, ADPCM) stay below -34 dB
    // ADPCM pads its last block.
    EXPECT_LE(whole.mono.size(),
              wanted.size() + (whole.format.codec == "adpcm_ima_wav" ? 2041 : 0));
}

INSTANTIATE_TEST_SUITE_P(P07, AudioCodecs,
                         ::testing::Values("pcm_u8", "pcm_s16le", "pcm_s24le", "pcm_s32le",
                                           "pcm_f32le", "pcm_f64le", "pcm_alaw", "pcm_mulaw",
                                           "adpcm_ima_wav"));

TEST_F(AudioSourceTest, ChannelsNeverCancel) {
    const auto voice = sine(440.0, 48000, 48000);
    auto opposite = voice;
    for (float& value : opposite) value = -value;
    const std::vector<float> silence(voice.size(), 0.0F);
    const double level = rms(voice);
    const std::vector<std::vector<std::vector<float>>> layouts{
        {voice, opposite},
        {voice, silence},
        {voice, voice},
        {silence, silence, voice, silence, silence, silence}};
    for (const auto& channels : layouts) {
        write_wav(scratch_.file("a.wav"), 48000, static_cast<int>(channels.size()),
                  to_int16(interleave(channels)));
        const Whole whole = read_all(scratch_.file("a.wav"));
        EXPECT_EQ(whole.format.channels, static_cast<int>(channels.size()));
        EXPECT_EQ(whole.mono.size(), 16000U);
        EXPECT_NEAR(rms(whole.mono), level, 0.05 * level);
    }
}

TEST_F(AudioSourceTest, CompressedSoundKeepsItsLengthAndPlace) {
    // A click exactly in the middle: the decoder's delay must not shift it.
    std::vector<float> wave(44100 + 17, 0.0F);
    for (size_t i = 0; i < 20; ++i) wave[22050 + i] = i % 2 == 0 ? 0.9F : -0.9F;
    write_wav(scratch_.file("a.wav"), 44100, 1, to_int16(wave));
    for (const char* target : {"b.mp3", "b.m4a", "b.flac", "-c:a libopus b.opus"}) {
        const std::string text(target);
        const size_t space = text.rfind(' ');
        const std::string file =
            scratch_.file(space == std::string::npos ? text : text.substr(space + 1));
        ffmpeg("-i " + scratch_.file("a.wav") +
               (space == std::string::npos ? " " : " " + text.substr(0, space) + " ") + file);
        const Whole whole = read_all(file);
        const double seconds =
            static_cast<double>(whole.source_samples) / whole.format.sample_rate_hz;
        EXPECT_NEAR(seconds, 44117 / 44100.0, 0.0006) << target;
        const auto loudest =
            std::max_element(whole.mono.begin(), whole.mono.end(),
                             [](float a, float b) { return std::abs(a) < std::abs(b); });
        EXPECT_NEAR(static_cast<double>(loudest - whole.mono.begin()) / 16000, 0.5, 0.002)
            << target;
    }
}

TEST_F(AudioSourceTest, ContentDecidesNotTheName) {
    const std::string wav = scratch_.file("a.wav");
    write_wav(wav, 22050, 1, to_int16(sine(440.0, 22050, 22050)));
    ffmpeg("-f lavfi -i color=red:s=64x64:d=0.04 -frames:v 1 " + scratch_.file("cover.png"));
    ffmpeg("-i " + wav + " -i " + scratch_.file("cover.png") +
           " -map 0:a -map 1:v -c:a libmp3lame -c:v png -disposition:v:0 attached_pic "
           "-id3v2_version 3 " +
           scratch_.file("cover.mp3"));
    ffmpeg("-i " + wav + " " + scratch_.file("b.m4a"));
    std::filesystem::copy_file(scratch_.file("b.m4a"), scratch_.file("m4a_named.wav"));
    std::filesystem::copy_file(scratch_.file("cover.mp3"), scratch_.file("mp3_named.wav"));
    for (const char* name : {"cover.mp3", "m4a_named.wav", "mp3_named.wav"}) {
        const Whole whole = read_all(scratch_.file(name));
        EXPECT_EQ(whole.mono.size(), 16000U) << name;
        EXPECT_NEAR(rms(whole.mono), 0.5 / std::sqrt(2.0), 0.02) << name;
    }
    EXPECT_EQ(read_all(scratch_.file("m4a_named.wav")).format.codec, "aac");
}

TEST_F(AudioSourceTest, OddNamesAreNames) {
    const auto wave = to_int16(noise(1600, 3));
    for (const char* name : {"http:x.wav", "concat:a|b.wav", "it's & co (1).wav", "тест 数字.wav",
                             "a%03d.wav", "\"quoted\" $HOME.wav", "-", "-.wav", "pipe:0"}) {
        write_wav(scratch_.file(name), 16000, 1, wave);
        EXPECT_EQ(read_mono(scratch_.file(name), 16000).size(), 1600U) << name;
    }
    // A relative name that looks like a protocol.
    const auto before = std::filesystem::current_path();
    std::filesystem::current_path(scratch_.path());
    EXPECT_EQ(read_mono("pipe:0", 16000).size(), 1600U);
    EXPECT_EQ(read_mono("http:x.wav", 16000).size(), 1600U);
    std::filesystem::current_path(before);
}

TEST_F(AudioSourceTest, StandardInput) {
    write_wav(scratch_.file("a.wav"), 16000, 1, to_int16(noise(48000, 4)));
    const std::string command = "cat " + scratch_.file("a.wav");
    FILE* pipe = ::popen(command.c_str(), "r");
    ASSERT_NE(pipe, nullptr);
    const int saved = ::dup(STDIN_FILENO);
    ::dup2(::fileno(pipe), STDIN_FILENO);
    const auto mono = read_mono("-", 16000);
    ::dup2(saved, STDIN_FILENO);
    ::close(saved);
    ::pclose(pipe);
    EXPECT_EQ(mono, read_mono(scratch_.file("a.wav"), 16000));
}

TEST_F(AudioSourceTest, NotANumberIsRefusedWithItsPlace) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const float infinity = std::numeric_limits<float>::infinity();
    for (const float bad : {nan, infinity, -infinity}) {
        auto wave = noise(2 * 32000, 5);
        wave[2 * 24000 + 1] = bad;
        write_wav(scratch_.file("a.wav"), 16000, 2, wave);
        try {
            // Refused before any work, so already when opening.
            static_cast<void>(AudioSource::open(scratch_.file("a.wav"), {}));
            ADD_FAILURE() << bad << " was accepted";
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::bad_input);
            EXPECT_THAT(error.what(), HasSubstr("1.500000 s"));
        }
    }
}

TEST_F(AudioSourceTest, LoudFloatsAreLimited) {
    // The largest would overflow inside the resampler and come out as NaN.
    for (const float amplitude : {1.5F, 1e30F, std::numeric_limits<float>::max()}) {
        for (const int channels : {1, 2}) {
            const auto wave = noise(48000, 9, amplitude / 2);
            write_wav(scratch_.file("a.wav"), 48000, channels, wave);
            for (const float value : read_mono(scratch_.file("a.wav"), 16000)) {
                ASSERT_LE(std::abs(value), 1.0F) << amplitude;
            }
        }
    }
}

TEST_F(AudioSourceTest, ErrorsTellWhatIsWrong) {
    EXPECT_EQ(error_of(scratch_.file("missing.wav")).code(), ErrorCode::io);
    EXPECT_EQ(error_of(scratch_.path().string()).code(), ErrorCode::io);

    std::string garbage;
    std::mt19937 random(7);
    for (int i = 0; i < 4000; ++i) garbage += static_cast<char>(random());
    write_bytes(scratch_.file("garbage.mp3"), garbage);
    EXPECT_EQ(error_of(scratch_.file("garbage.mp3")).code(), ErrorCode::bad_input);

    write_bytes(scratch_.file("empty.wav"), "");
    EXPECT_EQ(error_of(scratch_.file("empty.wav")).code(), ErrorCode::bad_input);

    ffmpeg("-f lavfi -i color=red:s=64x64:d=0.2 " + scratch_.file("silent.mp4"));
    const Error no_sound = error_of(scratch_.file("silent.mp4"));
    EXPECT_EQ(no_sound.code(), ErrorCode::bad_input);
    EXPECT_THAT(no_sound.what(), HasSubstr("no audio stream"));
}

TEST_F(AudioSourceTest, PlaylistsOpenNothingElse) {
    write_wav(scratch_.file("secret.wav"), 16000, 1, to_int16(noise(16000, 6)));
    write_bytes(scratch_.file("list.wav"),
                "ffconcat version 1.0\nfile '" + scratch_.file("secret.wav") + "'\n");
    EXPECT_EQ(error_of(scratch_.file("list.wav")).code(), ErrorCode::bad_input);
    write_bytes(scratch_.file("list.m3u8"),
                "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nfile://" +
                    scratch_.file("secret.wav") + "\n#EXT-X-ENDLIST\n");
    EXPECT_EQ(error_of(scratch_.file("list.m3u8")).code(), ErrorCode::bad_input);
}

TEST_F(AudioSourceTest, KeepsPacketsAndFramesOnRequest) {
    write_wav(scratch_.file("a.wav"), 48000, 2, to_int16(noise(2 * 48000, 8)));
    ffmpeg("-i " + scratch_.file("a.wav") + " " + scratch_.file("b.m4a"));
    AudioSourceOptions options;
    options.keep_packets = true;
    options.keep_frames = true;
    const auto source = AudioSource::open(scratch_.file("b.m4a"), options);
    int64_t samples = 0;
    std::optional<int64_t> first;
    int64_t end = 0;
    while (auto piece = source->read()) {
        for (const auto& frame : piece->frames) samples += frame->nb_samples;
        for (const auto& packet : piece->packets) {
            if (!first) first = packet->pts;
            end = packet->pts + packet->duration;
        }
    }
    EXPECT_EQ(samples, source->total_source_samples());
    EXPECT_EQ(first, -1024);  // the encoder's delay lies before 0
    EXPECT_NEAR(static_cast<double>(end), 48000, 48);
    EXPECT_EQ(source->packet_time_base(), (Rational{1, 48000}));
}

TEST_F(AudioSourceTest, PiecesAreSmall) {
    write_wav(scratch_.file("a.wav"), 16000, 1, to_int16(noise(160000, 9)));
    const auto source = AudioSource::open(scratch_.file("a.wav"), {});
    while (auto piece = source->read()) EXPECT_LE(piece->mono.size(), 4096U);
}

}  // namespace
}  // namespace newscaster::media
