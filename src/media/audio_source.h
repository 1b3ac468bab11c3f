// Reading speech: any container libav reads -> mono float at the pack's rate for analysis, while
// the original sound is handed on untouched for the output.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/log.h"
#include "newscaster/types.h"

struct AVPacket;
struct AVCodecParameters;
struct AVFrame;

namespace newscaster::media {

struct AudioFormat {
    std::string container;  // "wav", "mov,mp4,...", as libav names it
    std::string codec;      // "pcm_s16le", "aac"
    int sample_rate_hz = 0;
    int channels = 0;
    std::optional<double> duration_s;  // when the container says so
};

// What one read() yields. Packets and frames are libav's, reference-counted.
struct AudioRead {
    std::vector<float> mono;  // analysis samples in [-1, 1], may be empty
    // Original compressed packets in packet_time_base(), shifted so that 0 is the first audible
    // sample; what the decoder needs before it (encoder delay) has negative time stamps.
    std::vector<std::shared_ptr<AVPacket>> packets;
    std::vector<std::shared_ptr<AVFrame>> frames;  // original decoded sound
};

struct AudioSourceOptions {
    int64_t analysis_rate_hz = 16000;
    bool keep_packets = false;  // fill AudioRead::packets (stream copy)
    bool keep_frames = false;   // fill AudioRead::frames (re-encoding)
    Log log;
};

// One pass over one input with constant memory. Not thread-safe.
class AudioSource {
  public:
    // path: a file, or "-" for standard input. The content decides the format, not the name;
    // attached pictures are ignored, the default audio stream is used. Uncompressed float files are
    // scanned once for values that are not finite.
    // Throws Error(bad_input): no audio stream, not audio, unsupported codec, zero samples;
    // Error(io): unreadable.
    static std::unique_ptr<AudioSource> open(const std::string& path,
                                             const AudioSourceOptions& options);
    virtual ~AudioSource() = default;

    [[nodiscard]] virtual const AudioFormat& format() const = 0;
    [[nodiscard]] virtual const AVCodecParameters& codec_parameters() const = 0;
    // Time base of the packets, as num/den seconds.
    [[nodiscard]] virtual Rational packet_time_base() const = 0;

    // Next piece (roughly 20 to 100 ms); nullopt at the end. After the end total_source_samples()
    // is final and the mono samples read sum to ceil(total_source_samples * analysis_rate / rate).
    // Throws Error(bad_input) on NaN or infinite samples, Error(io) on read errors.
    virtual std::optional<AudioRead> read() = 0;

    // Samples per channel at the source rate so far.
    [[nodiscard]] virtual int64_t total_source_samples() const = 0;
};

// Reads a whole (short) file as mono at `rate_hz`; for tests, benchmarks and tools.
[[nodiscard]] std::vector<float> read_mono(const std::string& path, int64_t rate_hz);

}  // namespace newscaster::media
