// Demuxing and decoding of one audio stream, packet by packet. Private to this room.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/log.h"
#include "media/input.h"

namespace newscaster::media {

// One packet and what the decoder gave for it.
struct AudioStep {
    std::shared_ptr<AVPacket> packet;  // null in the last step, which drains the decoder
    std::vector<std::shared_ptr<AVFrame>> frames;
};

// Decoder delay and padding are already cut from the frames where the container tells them.
// Not thread-safe.
class AudioInput {
  public:
    // Throws as AudioSource::open, except that no sample is decoded yet.
    AudioInput(const std::string& path, const Log& log);

    // nullopt after the last step. Packets that cannot be decoded become silence of their length,
    // so that what follows stays in time. Throws Error(io) on read errors, Error(bad_input) when
    // rate or channels change.
    std::optional<AudioStep> next();

    [[nodiscard]] const std::string& name() const { return name_; }
    [[nodiscard]] const AVStream& stream() const { return *stream_; }
    [[nodiscard]] const AVFormatContext& container() const { return *input_.format; }
    [[nodiscard]] std::string codec_name() const;
    // Packets that could not be decoded so far.
    [[nodiscard]] int64_t damaged_packets() const { return damaged_packets_; }

  private:
    void choose_stream();
    void open_decoder();
    bool read_packet();
    void decode(const AVPacket* packet, AudioStep& step);
    void receive(AudioStep& step);
    void replace_by_silence(const AVPacket& packet, AudioStep& step);
    void check_format(const AVFrame& frame);
    void cut_at_stream_end(AVFrame& frame);

    std::string name_;
    Log log_;
    Input input_;
    AVStream* stream_ = nullptr;
    AvCodecPtr decoder_;
    AvPacketPtr packet_;
    AvFramePtr first_;     // format of the first frame, no data
    int64_t samples_ = 0;  // decoded so far
    int64_t damaged_packets_ = 0;
    bool ended_ = false;
};

}  // namespace newscaster::media
