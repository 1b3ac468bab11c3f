// H.264 and sound in MP4 or MKV. Private to this room.
#pragma once

#include <cstdint>
#include <optional>

#include "encode/aac_encoder.h"
#include "encode/h264_encoder.h"
#include "encode/output_file.h"
#include "encode/video_writer.h"

namespace newscaster::encode {

// MP4 files carry the index in front; outputs that cannot seek get fragments.
class MuxWriter final : public VideoWriter {
  public:
    // Writes the header; throws as open_writer.
    explicit MuxWriter(const WriterOptions& options);

    void write_video(const VideoFramePtr& frame) override;
    void write_audio_packet(const std::shared_ptr<AVPacket>& packet) override;
    void write_audio_frame(const std::shared_ptr<AVFrame>& frame) override;
    void finish() override;

  private:
    void add_video_stream(const WriterOptions& options);
    void add_audio_stream(const WriterOptions& options);
    void write_header(const WriterOptions& options);
    void write_packet(AVPacket& packet, AVRational time_base, const AVStream& stream);
    // Throws Error(io) with the system's reason when there is one, else Error(runtime).
    void check(int result, const char* doing) const;

    OutputFile file_;
    media::OutputFormatPtr format_;  // writes through file_, so it goes first
    std::optional<H264Encoder> video_;
    std::optional<AacEncoder> audio_;
    AVStream* video_stream_ = nullptr;
    AVStream* audio_stream_ = nullptr;
    AudioCarry carry_;
    AVRational packet_time_base_{0, 1};  // of copied packets
    int64_t next_copy_pts_ = 0;          // for packets without a time stamp, in packet_time_base_
    int64_t copy_shift_ = 0;             // added to copied packets, in packet_time_base_
    int64_t longest_copy_ = 0;           // duration, in packet_time_base_
    int64_t next_frame_ = 0;
    int width_;
    int height_;
};

}  // namespace newscaster::encode
