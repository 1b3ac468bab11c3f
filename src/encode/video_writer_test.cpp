#include "encode/video_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

extern "C" {
#include <libavcodec/codec_par.h>
}

#include <cstdlib>

#include "core/file.h"
#include "media/audio_source.h"
#include "media/test_support.h"
#include "newscaster/error.h"

namespace newscaster::encode {
namespace {

using media::testing::ScratchFolder;
using ::testing::HasSubstr;

struct Picture {
    VideoFrame frame;
    std::vector<uint8_t> planes;
};

VideoFramePtr picture(int64_t index) {
    auto owner = std::make_shared<Picture>();
    owner->planes.assign(64 * 48, 128);
    for (size_t i = 0; i < 64 * 32; ++i) {
        owner->planes[i] = static_cast<uint8_t>(16 + (i + 3 * static_cast<size_t>(index)) % 200);
    }
    const uint8_t* y = owner->planes.data();
    owner->frame = {index, static_cast<double>(index) / 25, 64, 32, y, y + 64 * 32, 64, 64};
    return {owner, &owner->frame};
}

// A stereo WAV, 15 kHz on the right only, as a video of `output`'s kind; sample count at 48 kHz.
void make(const std::string& wav, const std::string& output, size_t samples) {
    const std::vector<float> left(samples, 0.0F);
    const auto right = media::testing::sine(15000, 48000, samples, 0.1);
    media::testing::write_wav(
        wav, 48000, 2, media::testing::to_int16(media::testing::interleave<float>({left, right})));
    media::AudioSourceOptions sound;
    sound.keep_frames = true;
    const auto source = media::AudioSource::open(wav, sound);
    WriterOptions options;
    options.output = output;
    options.container = container_from("", output);
    options.video.width = 64;
    options.video.height = 32;
    options.video.threads = 2;
    options.carry = choose_carry(options.container, source->codec_parameters());
    options.audio = {&source->codec_parameters(), source->packet_time_base()};
    const auto writer = open_writer(options);
    while (auto piece = source->read()) {
        if (options.carry != AudioCarry::aac) continue;
        for (const auto& frame : piece->frames) writer->write_audio_frame(frame);
    }
    const int64_t count = frames_covering(source->total_source_samples(), 48000, {25, 1});
    for (int64_t i = 0; i < count; ++i) writer->write_video(picture(i));
    EXPECT_FALSE(std::filesystem::is_regular_file(output));
    writer->finish();
}

TEST(VideoWriter, Mp4HasTagsExactSoundAndIndexInFront) {
    const ScratchFolder scratch;
    const std::string mp4 = scratch.file("a.mp4");
    make(scratch.file("a.wav"), mp4, 48001);
    const std::string video =
        media::testing::ffprobe("-select_streams v -show_entries stream " + mp4);
    for (const char* tag :
         {"pix_fmt=yuv420p", "color_range=tv", "color_space=bt709", "color_transfer=bt709",
          "color_primaries=bt709", "avg_frame_rate=25/1", "nb_frames=26"}) {
        EXPECT_THAT(video, HasSubstr(tag));
    }
    const std::string bytes = read_text(mp4);
    EXPECT_LT(bytes.find("moov"), bytes.find("mdat"));
    const auto source = media::AudioSource::open(mp4, {});
    while (source->read()) {
    }
    EXPECT_EQ(source->total_source_samples(), 48001);
    make(scratch.file("a.wav"), scratch.file("b.mp4"), 48001);
    EXPECT_EQ(read_text(scratch.file("b.mp4")), bytes);
}

struct AacCase {
    int rate_hz;
    int channels;
    int aac_rate_hz;
    int aac_channels;
};

// Half a second of any rate and layout becomes AAC of the same length.
void check_aac(const AacCase& test) {
    const ScratchFolder scratch;
    const auto samples = static_cast<size_t>(test.rate_hz / 2);
    const auto tone = media::testing::sine(440, test.rate_hz, samples, 0.2);
    const std::vector<std::vector<float>> lanes(static_cast<size_t>(test.channels), tone);
    media::testing::write_wav(scratch.file("a.wav"), test.rate_hz, test.channels,
                              media::testing::to_int16(media::testing::interleave<float>(lanes)));
    media::AudioSourceOptions sound;
    sound.keep_frames = true;
    const auto source = media::AudioSource::open(scratch.file("a.wav"), sound);
    WriterOptions options;
    options.output = scratch.file("a.mp4");
    options.video.width = 64;
    options.video.height = 32;
    options.carry = AudioCarry::aac;
    options.audio = {&source->codec_parameters(), source->packet_time_base()};
    const auto writer = open_writer(options);
    while (auto piece = source->read()) {
        for (const auto& frame : piece->frames) writer->write_audio_frame(frame);
    }
    for (int64_t i = 0; i < 13; ++i) writer->write_video(picture(i));
    writer->finish();

    const auto result = media::AudioSource::open(options.output, {});
    EXPECT_EQ(result->format().codec, "aac");
    EXPECT_EQ(result->format().sample_rate_hz, test.aac_rate_hz);
    EXPECT_EQ(result->format().channels, test.aac_channels);
    while (result->read()) {
    }
    EXPECT_NEAR(static_cast<double>(result->total_source_samples()) / test.aac_rate_hz, 0.5, 0.002);
}

TEST(VideoWriter, AacTakesAnyRateAndLayout) {
    for (const AacCase& test :
         {AacCase{8000, 1, 8000, 1}, AacCase{11025, 2, 11025, 2}, AacCase{44100, 6, 44100, 6},
          AacCase{48000, 3, 48000, 3}, AacCase{48000, 8, 48000, 8}, AacCase{96000, 2, 96000, 2},
          AacCase{192000, 2, 96000, 2}}) {
        SCOPED_TRACE(fmt::format("{} Hz, {} channels", test.rate_hz, test.channels));
        check_aac(test);
    }
}

TEST(VideoWriter, FullDiskIsAnErrorWithReason) {
    const ScratchFolder scratch;
    WriterOptions options;
    options.output = "/dev/full";
    options.container = Container::nv12;
    options.video.width = 64;
    options.video.height = 32;
    const auto writer = open_writer(options);
    try {
        writer->write_video(picture(0));
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::io);
        EXPECT_THAT(error.what(), HasSubstr("No space left"));
    }
}

TEST(ContainerFrom, NameAndFormat) {
    EXPECT_EQ(container_from("", "a.mp4"), Container::mp4);
    EXPECT_EQ(container_from("", "a.b.mkv"), Container::mkv);
    EXPECT_EQ(container_from("y4m", "a.mp4"), Container::y4m);
    EXPECT_EQ(container_from("", "-"), Container::mp4);
    EXPECT_EQ(container_from("png", "frames"), Container::png);
    EXPECT_THROW((void)container_from("avi", "a.mp4"), Error);
    EXPECT_THROW((void)container_from("", "a.avi"), Error);
}

TEST(ChooseCarry, CopiesWhatTheContainerHolds) {
    struct Case {
        AVCodecID codec;
        int rate_hz;
        AudioCarry mp4;
        AudioCarry mkv;
    };
    for (const Case& test : {Case{AV_CODEC_ID_PCM_S16LE, 48000, AudioCarry::aac, AudioCarry::copy},
                             Case{AV_CODEC_ID_MP3, 44100, AudioCarry::copy, AudioCarry::copy},
                             Case{AV_CODEC_ID_MP3, 8000, AudioCarry::aac, AudioCarry::copy},
                             Case{AV_CODEC_ID_OPUS, 48000, AudioCarry::copy, AudioCarry::copy},
                             Case{AV_CODEC_ID_VORBIS, 48000, AudioCarry::aac, AudioCarry::copy},
                             Case{AV_CODEC_ID_FLAC, 48000, AudioCarry::aac, AudioCarry::copy}}) {
        AVCodecParameters source{};
        source.codec_type = AVMEDIA_TYPE_AUDIO;
        source.codec_id = test.codec;
        source.sample_rate = test.rate_hz;
        EXPECT_EQ(choose_carry(Container::mp4, source), test.mp4) << test.codec;
        EXPECT_EQ(choose_carry(Container::mkv, source), test.mkv) << test.codec;
        EXPECT_EQ(choose_carry(Container::nv12, source), AudioCarry::none) << test.codec;
    }
}

// Writes three pictures in a raw format and returns what ffmpeg decodes them to as rgb24.
std::string decoded_rgb(const std::string& output, Container container, const std::string& input) {
    WriterOptions options;
    options.output = output;
    options.container = container;
    options.video.width = 64;
    options.video.height = 32;
    const auto writer = open_writer(options);
    for (int64_t i = 0; i < 3; ++i) writer->write_video(picture(i));
    writer->finish();
    const std::string raw = output + ".rgb";
    const std::string command = "ffmpeg -v error -nostdin -y " + input +
                                " -vf scale=in_color_matrix=bt709:in_range=tv:out_range=pc:"
                                "flags=accurate_rnd+full_chroma_int,format=rgb24 -f rawvideo " +
                                raw;
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
    return read_text(raw);
}

TEST(VideoWriter, Y4mAndPngShowTheSamePicture) {
    const ScratchFolder scratch;
    const std::string y4m = scratch.file("a.y4m");
    const std::string from_y4m = decoded_rgb(y4m, Container::y4m, "-i " + y4m);
    ASSERT_EQ(from_y4m.size(), 3U * 64 * 32 * 3);
    EXPECT_EQ(read_text(y4m).substr(0, 32), "YUV4MPEG2 W64 H32 F25:1 Ip A1:1 ");
    const std::string folder = scratch.file("frames");
    decoded_rgb(folder, Container::png, "-i " + folder + "/%06d.png");
    // PNG is full-range RGB already: decode it without the matrix of the command above.
    const std::string raw = scratch.file("png.rgb");
    const std::string command = "ffmpeg -v error -nostdin -y -start_number 0 -i " + folder +
                                "/%06d.png -pix_fmt rgb24 -f rawvideo " + raw;
    ASSERT_EQ(std::system(command.c_str()), 0);
    const std::string from_png = read_text(raw);
    ASSERT_EQ(from_png.size(), from_y4m.size());
    int worst = 0;
    for (size_t i = 0; i < from_png.size(); ++i) {
        worst = std::max(worst, std::abs(static_cast<int>(static_cast<uint8_t>(from_png[i])) -
                                         static_cast<int>(static_cast<uint8_t>(from_y4m[i]))));
    }
    EXPECT_LE(worst, 2);
}

TEST(CheckOutput, FindsUnwritablePlacesAndLeavesNothing) {
    const ScratchFolder scratch;
    for (const Container container : {Container::mp4, Container::y4m, Container::png}) {
        check_output(container, scratch.file("out"));
        EXPECT_EQ(scratch.entries(), 0U);
        EXPECT_THROW(check_output(container, "/proc/newscaster/out"), Error);
    }
    EXPECT_THROW(check_output(Container::png, "-"), Error);
    EXPECT_THROW(check_output(Container::mp4, scratch.file(".")), Error);
    check_output(Container::y4m, "-");
    check_output(Container::nv12, "/dev/null");
    EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
    // Without a reader, opening a pipe would wait for ever.
    const std::string pipe = scratch.file("pipe");
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    check_output(Container::mkv, pipe);
    EXPECT_TRUE(std::filesystem::is_fifo(pipe));
}

TEST(VideoWriter, NothingStaysWithoutFinish) {
    for (const Container container :
         {Container::mp4, Container::mkv, Container::nv12, Container::y4m, Container::png}) {
        const ScratchFolder scratch;
        WriterOptions options;
        options.output = scratch.file("out");
        options.container = container;
        options.video.width = 64;
        options.video.height = 32;
        open_writer(options)->write_video(picture(0));
        EXPECT_EQ(scratch.entries(), 0U);
    }
}

}  // namespace
}  // namespace newscaster::encode
