// Writing the result: H.264 + the original sound in MP4/MKV, or raw NV12 / Y4M / PNG frames.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/log.h"
#include "newscaster/types.h"

struct AVPacket;
struct AVCodecParameters;
struct AVFrame;

namespace newscaster::encode {

enum class Container { mp4, mkv, nv12, y4m, png };

// From --format or, when that is empty, from the file name; "-" without format is mp4 fragments.
// Throws Error(bad_input) naming what is known.
[[nodiscard]] Container container_from(const std::string& format, const std::string& output);

struct VideoOptions {
    int width = 0;
    int height = 0;
    Rational fps{25, 1};
    double crf = 18.0;                // 0..51, libx264's constant rate factor
    std::string preset = "veryfast";  // libx264 preset
    int threads = 0;                  // encoder threads, 0 = chosen by the codec
    Log log;
};

// How the original sound travels.
enum class AudioCarry { none, copy, aac };

// The sound that accompanies the video.
struct AudioTrack {
    const AVCodecParameters* parameters = nullptr;  // of the source stream; used while opening
    Rational packet_time_base{0, 1};
};

// copy when `container` can hold the codec as it is, else aac; none for raw formats.
[[nodiscard]] AudioCarry choose_carry(Container container, const AVCodecParameters& source);

// Writes frames in index order. Not thread-safe. Nothing appears under the final name before
// finish(); a writer destroyed earlier leaves no trace (PNG: the folder appears at finish()).
// Devices, named pipes and standard output are written as the frames come. A program that writes
// to pipes should ignore SIGPIPE: a reader that went away is then Error(io), not the end of the
// process; the library leaves signals alone.
class VideoWriter {
  public:
    virtual ~VideoWriter() = default;

    // frame.index must go up by one from 0. Throws Error(io) (disk full, closed pipe, ...).
    virtual void write_video(const VideoFramePtr& frame) = 0;
    // copy: packets in the source's time base, 0 = the first audible sample (as AudioSource gives
    // them). aac: decoded frames in any layout. Either may be called ahead of the video; the writer
    // interleaves. Sound and video should stay within 30 s of each other.
    virtual void write_audio_packet(const std::shared_ptr<AVPacket>& packet) = 0;
    virtual void write_audio_frame(const std::shared_ptr<AVFrame>& frame) = 0;
    // Flushes, writes the index, renames into place.
    virtual void finish() = 0;
};

struct WriterOptions {
    std::string output;  // path, or "-" for standard output (mp4: fragments); png: a folder
    Container container = Container::mp4;
    VideoOptions video;
    AudioCarry carry = AudioCarry::none;
    AudioTrack audio;
};

// Checks that the place is writable before returning. Throws Error(io), Error(bad_input).
[[nodiscard]] std::unique_ptr<VideoWriter> open_writer(const WriterOptions& options);

// Fails where open_writer() would for want of a writable place, but opens and leaves nothing; for a
// check before long preparations. Throws Error(io).
void check_output(Container container, const std::string& output);

// Encoders in the libav build that newscaster can use, for `doctor`: {"libx264", "aac", ...}.
[[nodiscard]] std::vector<std::string> available_encoders();

}  // namespace newscaster::encode
