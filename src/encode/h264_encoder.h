// NV12 frames -> H.264 packets through libx264. Private to this room.
#pragma once

#include <functional>

#include "encode/video_writer.h"
#include "media/av_ptr.h"

namespace newscaster::encode {

// Receives packets with time stamps in the encoder's time base; may move the content out.
using PacketSink = std::function<void(AVPacket&)>;

// BT.709 limited range, 4:2:0, a keyframe at least every two seconds. The same frames and the same
// number of threads give the same bytes. Not thread-safe.
class H264Encoder {
  public:
    // Throws Error(bad_input) naming an option that libx264 does not take, Error(runtime) when
    // libav has no libx264. global_header: parameter sets go to the container's header.
    H264Encoder(const VideoOptions& options, bool global_header);

    [[nodiscard]] const AVCodecContext& context() const { return *context_; }

    // The frame's planes are not copied; it is held until the encoder took them.
    void encode(const VideoFramePtr& frame, const PacketSink& sink);
    void finish(const PacketSink& sink);

  private:
    void send(const AVFrame* frame, const PacketSink& sink);

    media::AvCodecPtr context_;
    media::AvPacketPtr packet_;
};

}  // namespace newscaster::encode
