// Users' complaints about sound going in (cases P01 to P08) through the real program.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "e2e/inputs.h"
#include "e2e/media_probe.h"
#include "e2e/program.h"

namespace newscaster::e2e {
namespace {

namespace fs = std::filesystem;

constexpr double kFps = 25.0;
constexpr double kFrameS = 1.0 / kFps;

struct Rendered {
    RunResult run;
    fs::path video;
    Motion motion;
};

// Every call of a test renders to a folder of its own, so earlier videos stay.
Rendered render(const fs::path& audio, const std::vector<std::string>& extra = {}) {
    static int calls = 0;
    const fs::path folder =
        fs::path(testing::TempDir()) / "newscaster_e2e" / ("render_" + std::to_string(calls++));
    fs::remove_all(folder);
    fs::create_directories(folder);
    Rendered result;
    result.video = folder / "out.mp4";
    std::vector<std::string> arguments{"render",
                                       audio.string(),
                                       "-o",
                                       result.video.string(),
                                       "--export-motion",
                                       (folder / "m.json").string()};
    arguments.insert(arguments.end(), extra.begin(), extra.end());
    result.run = newscaster(arguments);
    EXPECT_EQ(result.run.exit_code, 0) << result.run.err;
    if (result.run.exit_code == 0) result.motion = read_motion(folder / "m.json");
    return result;
}

std::vector<double> jaw_of_plain_speech() {
    static const std::vector<double> jaw = render(speech()).motion.channel("jawOpen");
    return jaw;
}

// P01: any rate and channel layout gives the same frames and the same mouth.
TEST(P01, RatesAndChannelsSpeakAlike) {
    const auto reference = jaw_of_plain_speech();
    const auto source = decode_sound(speech());
    const auto expected = static_cast<int64_t>(
        std::ceil(static_cast<double>(source.samples.size()) / source.rate_hz * kFps));
    EXPECT_EQ(static_cast<int64_t>(reference.size()), expected);

    const std::vector<std::pair<std::string, std::vector<std::string>>> cases{
        {"p01_left44.wav", {"-ar", "44100", "-af", "pan=stereo|c0=c0|c1=0*c0"}},
        {"p01_antiphase48.wav", {"-ar", "48000", "-af", "pan=stereo|c0=c0|c1=-1*c0"}},
        {"p01_8k.wav", {"-ar", "8000"}},
        {"p01_51_96k.wav", {"-ar", "96000", "-af", "pan=5.1|FC=c0"}}};
    for (const auto& [name, arguments] : cases) {
        const auto jaw = render(converted(name, arguments)).motion.channel("jawOpen");
        EXPECT_NEAR(static_cast<double>(jaw.size()), static_cast<double>(expected), 1.0) << name;
        EXPECT_GT(*std::max_element(jaw.begin(), jaw.end()), 0.1) << name;
        EXPECT_GT(correlation(jaw, reference), 0.8) << name;
    }
}

// P02: the result carries the original sound, not the analysis copy.
TEST(P02, OriginalSoundSurvives) {
    const std::string left_speech_right_tone =
        "[1:a]aresample=48000[s];[0:a]volume=0.5[h];[s][h]join=inputs=2:channel_layout=stereo";
    const fs::path audio =
        made("p02.wav", {"-f", "lavfi", "-i", "sine=f=15000:r=48000:d=2", "-i", speech().string(),
                         "-filter_complex", left_speech_right_tone});
    const auto result = render(audio);
    const Sound sound = decode_sound(result.video);
    EXPECT_EQ(sound.rate_hz, 48000);
    EXPECT_EQ(sound.channels, 2);
    const Sound original = decode_sound(audio);
    const double right = sound.tone_db(15000, 1, 0.5, 1.5);
    EXPECT_NEAR(right, original.tone_db(15000, 1, 0.5, 1.5), 3.0);
    EXPECT_LT(sound.tone_db(15000, 0, 0.5, 1.5), right - 30.0);
}

// P03: the mouth rests in silence, the head goes on living, nothing turns into NaN.
TEST(P03, ExactZerosRest) {
    const fs::path audio =
        made("p03_zeros.wav", {"-f", "lavfi", "-i", "anullsrc=r=16000:cl=mono", "-t", "5"});
    const auto result = render(audio);
    const auto jaw = result.motion.channel("jawOpen");
    ASSERT_EQ(jaw.size(), 125U);
    for (const auto& frame : result.motion.frames) {
        EXPECT_TRUE(
            std::all_of(frame.begin(), frame.end(), [](double v) { return std::isfinite(v); }));
    }
    EXPECT_LT(*std::max_element(jaw.begin(), jaw.end()), 0.08);
    EXPECT_GT(deviation(result.motion.channel("yaw")), 0.02);  // degrees
}

TEST(P03, QuietNoiseRests) {
    const fs::path audio =
        made("p03_noise.wav", {"-f", "lavfi", "-i", "anoisesrc=r=16000:c=pink:a=0.01:d=3:s=7"});
    const auto jaw = render(audio).motion.channel("jawOpen");
    EXPECT_LT(mean(jaw, 10, jaw.size()), 0.08);
}

TEST(P03, MouthClosesInAGapAndOpensAgain) {
    const fs::path audio =
        made("p03_gap.wav", {"-i", speech().string(), "-f", "lavfi", "-i",
                             "anullsrc=r=22050:cl=mono", "-filter_complex",
                             "[0:a]asplit[a][b];[1:a]atrim=0:2[z];[a][z][b]concat=n=3:v=0:a=1"});
    const auto jaw = render(audio).motion.channel("jawOpen");
    const Sound sound = decode_sound(speech());
    const double speech_s = static_cast<double>(sound.samples.size()) / sound.rate_hz;
    const auto gap = static_cast<size_t>((speech_s + 0.3) * kFps);
    const auto gap_end = static_cast<size_t>((speech_s + 1.8) * kFps);
    EXPECT_LT(*std::max_element(jaw.begin() + gap, jaw.begin() + gap_end), 0.1);
    EXPECT_GT(*std::max_element(jaw.begin() + gap_end, jaw.end()), 0.1);
}

TEST(P03, LongLeadInStaysClosed) {
    const auto jaw =
        render(converted("p03_lead.wav", {"-af", "adelay=3000"})).motion.channel("jawOpen");
    EXPECT_LT(*std::max_element(jaw.begin(), jaw.begin() + 70), 0.08);
    EXPECT_GT(*std::max_element(jaw.begin() + 75, jaw.end()), 0.1);
}

// P04: nothing is lost at the end when the length is no multiple of anything.
TEST(P04, TailIsWhole) {
    const fs::path audio = made(
        "p04_tail.wav", {"-i", speech().string(), "-f", "lavfi", "-i", "sine=f=1000:r=16000:d=0.04",
                         "-filter_complex",
                         "[0:a]aresample=16000,apad,atrim=0:13.90[a];[a][1:a]concat=n=2:v=0:a=1"});
    const auto result = render(audio);
    EXPECT_EQ(result.motion.frames.size(), 349U);
    const MediaFacts facts = probe(result.video);
    EXPECT_EQ(facts.video_frames, 349);
    EXPECT_LT(std::abs(facts.video_s - facts.audio_s), kFrameS);
    EXPECT_GE(facts.video_s, facts.audio_s - 0.001);
    const Sound sound = decode_sound(result.video);
    const Sound original = decode_sound(audio);
    EXPECT_GT(sound.tone_db(1000, 0, 13.90, 13.94), original.tone_db(1000, 0, 13.90, 13.94) - 6.0);
    EXPECT_LT(sound.tone_db(1000, 0, 13.70, 13.86), -55.0);
}

// P05: every length works.
TEST(P05, ShortLengths) {
    const std::vector<std::pair<int64_t, int64_t>> expected{{1, 1},     {160, 1},   {639, 1},
                                                            {640, 1},   {641, 2},   {1280, 2},
                                                            {6479, 11}, {6480, 11}, {6481, 11}};
    for (const auto& [samples, frames] : expected) {
        const auto result = render(cut(samples));
        EXPECT_EQ(static_cast<int64_t>(result.motion.frames.size()), frames) << samples;
        EXPECT_EQ(probe(result.video).video_frames, frames) << samples;
    }
}

TEST(P05, NoSamplesIsAnErrorWithoutAFile) {
    const fs::path output = scratch() / "out.mp4";
    const auto result = newscaster({"render", cut(0).string(), "-o", output.string()});
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_LT(result.cpu_s, 1.0 * kSlowdown);
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_TRUE(fs::is_empty(output.parent_path()));
}

TEST(P05, EndDoesNotFlick) {
    const auto jaw = jaw_of_plain_speech();
    double speech_jump = 0.0;
    double end_jump = 0.0;
    for (size_t i = 1; i < jaw.size(); ++i) {
        double& jump = i + 10 < jaw.size() ? speech_jump : end_jump;
        jump = std::max(jump, std::abs(jaw[i] - jaw[i - 1]));
    }
    EXPECT_LE(end_jump, speech_jump);
}

// P07: sample formats.
TEST(P07, SampleFormats) {
    const auto reference = jaw_of_plain_speech();
    for (const std::string codec : {"pcm_u8", "pcm_s24le", "pcm_s32le", "pcm_f32le", "pcm_f64le",
                                    "pcm_alaw", "pcm_mulaw", "adpcm_ima_wav"}) {
        const auto result =
            render(converted("p07_" + codec + ".wav", {"-ar", "16000", "-c:a", codec}),
                   {"--preset", "ultrafast"});
        EXPECT_GT(correlation(result.motion.channel("jawOpen"), reference), 0.8) << codec;
    }
}

// P08: pictures in audio files, lying extensions, garbage.
TEST(P08, CoverPictureIsIgnored) {
    const fs::path cover =
        made("cover.png", {"-f", "lavfi", "-i", "color=c=red:s=64x64", "-frames:v", "1"});
    const fs::path audio =
        made("p08_cover.mp3", {"-i", speech().string(), "-i", cover.string(), "-map", "0:a", "-map",
                               "1:v", "-c:a", "libmp3lame", "-c:v", "png", "-disposition:v:0",
                               "attached_pic", "-id3v2_version", "3"});
    const auto result = render(audio);
    EXPECT_GT(correlation(result.motion.channel("jawOpen"), jaw_of_plain_speech()), 0.7);
    const MediaFacts facts = probe(result.video);
    EXPECT_EQ(facts.audio.at("codec_name"), "mp3");
    EXPECT_LT(std::abs(facts.video_s - facts.audio_s), 2 * kFrameS);
}

TEST(P08, WrongExtensionsWork) {
    const fs::path folder = scratch();
    fs::copy_file(converted("p08.m4a", {"-c:a", "aac"}), folder / "m4a_named.wav");
    const fs::path output = folder / "out.mp4";
    const auto result = newscaster({"render", (folder / "m4a_named.wav").string(), "-o",
                                    output.string(), "--report", (folder / "r.json").string()});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    const MediaFacts facts = probe(output);
    EXPECT_EQ(facts.audio.at("codec_name"), "aac");
    EXPECT_LT(std::abs(facts.video_s - facts.audio_s), kFrameS);
}

TEST(P08, SoundOfAVideoFile) {
    const fs::path video = made("talk.mkv", {"-f", "lavfi", "-i", "testsrc2=s=64x64:r=10:d=2", "-i",
                                             speech().string(), "-c:a", "flac"});
    const auto jaw = render(video).motion.channel("jawOpen");
    EXPECT_GT(correlation(jaw, jaw_of_plain_speech()), 0.8);
}

// A human voice never trained on: the mouth follows the loudness and the file is in sync.
TEST(HumanVoice, MouthFollowsSpeech) {
    const fs::path audio = human_voice("vm-goodbye");
    const auto result = render(audio);
    const auto jaw = result.motion.channel("jawOpen");
    EXPECT_GT(*std::max_element(jaw.begin(), jaw.end()), 0.12);
    const MediaFacts facts = probe(result.video);
    EXPECT_LT(std::abs(facts.video_s - facts.audio_s), kFrameS);
    const Sound sound = decode_sound(audio);
    std::vector<double> loudness(jaw.size(), 0.0);
    const auto per_frame = static_cast<size_t>(sound.rate_hz / 25);
    for (size_t i = 0; i < sound.samples.size(); ++i) {
        loudness.at(std::min(i / per_frame, jaw.size() - 1)) += std::abs(sound.samples[i]);
    }
    EXPECT_GT(correlation(loudness, jaw), 0.3);
}

}  // namespace
}  // namespace newscaster::e2e
