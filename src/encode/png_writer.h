// One PNG per frame in a folder. Private to this room.
#pragma once

#include <cstdint>

#include "core/file.h"
#include "core/stage_types.h"
#include "encode/video_writer.h"

namespace newscaster::encode {

// 000000.png, 000001.png, ... The folder appears under its name at finish().
class PngWriter final : public VideoWriter {
  public:
    // The folder must not exist or be empty.
    explicit PngWriter(const WriterOptions& options);

    void write_video(const VideoFramePtr& frame) override;
    void write_audio_packet(const std::shared_ptr<AVPacket>& packet) override;
    void write_audio_frame(const std::shared_ptr<AVFrame>& frame) override;
    void finish() override;

  private:
    AtomicFolder folder_;
    int width_;
    int height_;
    int64_t next_frame_ = 0;
};

// BT.709 limited -> full range RGB, rounded to nearest; each chroma sample covers its 2x2 pixels.
// Matrix: ITU-R BT.709-6, section 3; quantisation: section 4.6 (8 bit).
[[nodiscard]] RgbImage to_rgb(const VideoFrame& frame);

}  // namespace newscaster::encode
