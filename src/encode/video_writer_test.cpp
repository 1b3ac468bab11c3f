#include "encode/video_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
