#include "encode/aac_encoder.h"

#include <fmt/format.h>

extern "C" {
#include <libavutil/channel_layout.h>
#include <libavutil/dict.h>
}

#include <algorithm>
#include <array>
#include <new>

#include "media/sample_convert.h"
#include "newscaster/error.h"

namespace newscaster::encode {

namespace {

constexpr int64_t kBitsPerSecondAndChannel = 96000;
constexpr int kMaxCutoffHz = 20000;

// ISO/IEC 14496-3, table 1.18 (sampling frequency index), ascending.
constexpr std::array<int, 13> kAacRates{7350,  8000,  11025, 12000, 16000, 22050, 24000,
                                        32000, 44100, 48000, 64000, 88200, 96000};

int aac_rate(int source_hz) {
    const auto* found = std::lower_bound(kAacRates.begin(), kAacRates.end(), source_hz);
    return found == kAacRates.end() ? kAacRates.back() : *found;
}

// Channel sets to try, best first: the source's own, the standard AAC one with as many channels,
// stereo. Every player knows the standard ones (index 1 to 6 and 12 of table 1.19); 5.x with side
// speakers is the same there as with back speakers.
std::vector<uint64_t> layouts_to_try(const AVChannelLayout& source) {
    std::vector<uint64_t> masks;
    const bool native = source.order == AV_CHANNEL_ORDER_NATIVE;
    if (native && source.u.mask == AV_CH_LAYOUT_5POINT1) masks.push_back(AV_CH_LAYOUT_5POINT1_BACK);
    if (native && source.u.mask == AV_CH_LAYOUT_5POINT0) masks.push_back(AV_CH_LAYOUT_5POINT0_BACK);
    if (native) masks.push_back(source.u.mask);
    switch (source.nb_channels) {
        case 1:
            masks.push_back(AV_CH_LAYOUT_MONO);
            break;
        case 2:
            masks.push_back(AV_CH_LAYOUT_STEREO);
            break;
        case 3:
            masks.push_back(AV_CH_LAYOUT_SURROUND);
            break;
        case 4:
            masks.push_back(AV_CH_LAYOUT_4POINT0);
            break;
        case 5:
            masks.push_back(AV_CH_LAYOUT_5POINT0_BACK);
            break;
        case 6:
            masks.push_back(AV_CH_LAYOUT_5POINT1_BACK);
            break;
        case 7:
            masks.push_back(AV_CH_LAYOUT_6POINT1);
            break;
        case 8:
            masks.push_back(AV_CH_LAYOUT_7POINT1);
            break;
        default:
            break;
    }
    masks.push_back(AV_CH_LAYOUT_STEREO);
    return masks;
}

}  // namespace

AacEncoder::AacEncoder(const AVCodecParameters& source, bool global_header)
    : packet_(media::make_packet()) {
    open(source, global_header);
}

void AacEncoder::open(const AVCodecParameters& source, bool global_header) {
    const AVCodec* codec = avcodec_find_encoder(AV_CODEC_ID_AAC);
    if (codec == nullptr) throw Error(ErrorCode::runtime, "libav here has no AAC encoder");
    int result = 0;
    for (const uint64_t mask : layouts_to_try(source.ch_layout)) {
        context_.reset(avcodec_alloc_context3(codec));
        if (!context_) throw std::bad_alloc();
        AVCodecContext& c = *context_;
        c.sample_fmt = AV_SAMPLE_FMT_FLTP;
        c.sample_rate = aac_rate(source.sample_rate);
        c.time_base = {1, c.sample_rate};
        av_channel_layout_from_mask(&c.ch_layout, mask);
        c.bit_rate = kBitsPerSecondAndChannel * c.ch_layout.nb_channels;
        c.cutoff = std::min(kMaxCutoffHz, c.sample_rate / 2);
        c.flags |= AV_CODEC_FLAG_BITEXACT;
        if (global_header) c.flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
        AVDictionary* settings = nullptr;
        // Tools that save bits by rebuilding high bands from another channel or from noise would
        // not keep what is on one channel only.
        av_dict_set(&settings, "aac_is", "0", 0);
        av_dict_set(&settings, "aac_pns", "0", 0);
        result = avcodec_open2(&c, codec, &settings);
        av_dict_free(&settings);
        if (result >= 0) return;
    }
    throw Error(
        ErrorCode::bad_input,
        fmt::format("AAC cannot hold sound of {} Hz with {} channels: {}", source.sample_rate,
                    source.ch_layout.nb_channels, media::av_reason(result)));
}

void AacEncoder::encode(const AVFrame& frame, const PacketSink& sink) {
    if (!resampler_) {
        resampler_.emplace(frame.sample_rate, context_->sample_rate,
                           context_->ch_layout.nb_channels);
    }
    decoded_.clear();
    media::append_interleaved(frame, decoded_);
    mapped_.clear();
    map_channels(decoded_, frame.ch_layout.nb_channels, context_->ch_layout.nb_channels, mapped_);
    resampler_->push(mapped_, pending_);
    encode_pending(false, sink);
}

void AacEncoder::finish(const PacketSink& sink) {
    if (resampler_) resampler_->finish(pending_);
    encode_pending(true, sink);
    send(nullptr, sink);
}

void AacEncoder::encode_pending(bool all, const PacketSink& sink) {
    const auto channels = static_cast<size_t>(context_->ch_layout.nb_channels);
    const auto whole = static_cast<size_t>(context_->frame_size);
    size_t done = 0;
    size_t left = pending_.size() / channels;
    while (left >= whole || (all && left > 0)) {
        const size_t count = std::min(left, whole);
        const media::AvFramePtr frame = media::make_frame();
        frame->format = context_->sample_fmt;
        frame->sample_rate = context_->sample_rate;
        frame->nb_samples = static_cast<int>(count);
        frame->pts = sent_;
        if (av_channel_layout_copy(&frame->ch_layout, &context_->ch_layout) < 0 ||
            av_frame_get_buffer(frame.get(), 0) < 0) {
            throw std::bad_alloc();
        }
        for (size_t c = 0; c < channels; ++c) {
            auto* plane = reinterpret_cast<float*>(frame->extended_data[c]);
            for (size_t i = 0; i < count; ++i) plane[i] = pending_[(done + i) * channels + c];
        }
        send(frame.get(), sink);
        sent_ += static_cast<int64_t>(count);
        done += count;
        left -= count;
    }
    pending_.erase(pending_.begin(), pending_.begin() + static_cast<int64_t>(done * channels));
}

void AacEncoder::send(const AVFrame* frame, const PacketSink& sink) {
    int result = avcodec_send_frame(context_.get(), frame);
    while (result >= 0) {
        result = avcodec_receive_packet(context_.get(), packet_.get());
        if (result == AVERROR(EAGAIN) || result == AVERROR_EOF) return;
        if (result < 0) break;
        sink(*packet_);
        av_packet_unref(packet_.get());
    }
    throw Error(ErrorCode::runtime,
                fmt::format("AAC encoding failed: {}", media::av_reason(result)));
}

void map_channels(const std::vector<float>& interleaved, int from, int to,
                  std::vector<float>& out) {
    if (from == to) {
        out.insert(out.end(), interleaved.begin(), interleaved.end());
        return;
    }
    const auto sources = static_cast<size_t>(from);
    const auto targets = static_cast<size_t>(to);
    const size_t frames = interleaved.size() / sources;
    out.reserve(out.size() + frames * targets);
    for (size_t i = 0; i < frames; ++i) {
        const float* frame = interleaved.data() + i * sources;
        for (size_t t = 0; t < targets; ++t) {
            if (targets > 2) {
                out.push_back(t < sources ? frame[t] : 0.0F);
                continue;
            }
            float sum = 0.0F;
            size_t count = 0;
            for (size_t s = sources == 1 ? 0 : t; s < sources; s += targets, ++count) {
                sum += frame[s];
            }
            out.push_back(sum / static_cast<float>(count));
        }
    }
}

}  // namespace newscaster::encode
