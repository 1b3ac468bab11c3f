// Decoded sound of any format -> AAC packets, with the source's rate and channels where AAC knows
// them. Private to this room.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "media/av_ptr.h"
#include "media/resampler.h"

namespace newscaster::encode {

// AAC-LC at 96 kbit/s per channel. Rates that AAC does not know become the next higher one it
// does, above 96 kHz 96 kHz. Time stamps count samples at the encoder's rate; the first audible
// sample is 0, so the encoder's delay lies before it, and the durations sum to delay + sound.
// Not thread-safe.
class AacEncoder {
  public:
    using PacketSink = std::function<void(AVPacket&)>;

    // source: rate and layout of the sound to come. Throws Error(runtime) when libav has no AAC
    // encoder, Error(bad_input) when it refuses the sound.
    AacEncoder(const AVCodecParameters& source, bool global_header);

    [[nodiscard]] const AVCodecContext& context() const { return *context_; }

    void encode(const AVFrame& frame, const PacketSink& sink);
    void finish(const PacketSink& sink);

  private:
    void open(const AVCodecParameters& source, bool global_header);
    void encode_pending(bool all, const PacketSink& sink);
    void send(const AVFrame* frame, const PacketSink& sink);

    media::AvCodecPtr context_;
    media::AvPacketPtr packet_;
    std::optional<media::Resampler> resampler_;
    std::vector<float> decoded_;  // interleaved, source channels
    std::vector<float> mapped_;   // interleaved, encoder channels
    std::vector<float> pending_;  // interleaved, encoder channels and rate
    int64_t sent_ = 0;            // samples per channel given to the encoder
};

// interleaved with `from` channels -> appended to out with `to` channels. Equal counts are copied;
// to mono: mean; to stereo: mean of the even channels left, of the odd ones right (mono to both);
// otherwise the first channels, the missing ones silent.
void map_channels(const std::vector<float>& interleaved, int from, int to, std::vector<float>& out);

}  // namespace newscaster::encode
