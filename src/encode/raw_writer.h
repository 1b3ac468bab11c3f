// Frames without compression: bare NV12, or planar YUV4MPEG2. Private to this room.
#pragma once

#include <cstdint>
#include <vector>

#include "encode/output_file.h"
#include "encode/video_writer.h"

namespace newscaster::encode {

// nv12: per frame the luma rows, then the chroma rows, without gaps.
// y4m: https://wiki.multimedia.cx/index.php/YUV4MPEG2, 4:2:0 with chroma between the pixels.
class RawWriter final : public VideoWriter {
  public:
    explicit RawWriter(const WriterOptions& options);

    void write_video(const VideoFramePtr& frame) override;
    void write_audio_packet(const std::shared_ptr<AVPacket>& packet) override;
    void write_audio_frame(const std::shared_ptr<AVFrame>& frame) override;
    void finish() override;

  private:
    void pack_nv12(const VideoFrame& frame);
    void pack_y4m(const VideoFrame& frame);

    OutputFile file_;
    bool y4m_;
    int width_;
    int height_;
    int64_t next_frame_ = 0;
    std::vector<uint8_t> buffer_;  // one frame as it goes out
};

}  // namespace newscaster::encode
