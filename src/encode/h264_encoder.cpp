#include "encode/h264_encoder.h"

#include <fmt/format.h>

extern "C" {
#include <libavutil/dict.h>
}

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <new>
#include <string_view>

#include "encode/frame_check.h"
#include "newscaster/error.h"

namespace newscaster::encode {

namespace {

constexpr double kKeyframeSeconds = 2.0;
constexpr double kMaxCrf = 51.0;

constexpr std::array<std::string_view, 10> kPresets{"ultrafast", "superfast", "veryfast", "faster",
                                                    "fast",      "medium",    "slow",     "slower",
                                                    "veryslow",  "placebo"};

void check_options(const VideoOptions& options) {
    check_size(options.width, options.height);
    if (!(options.crf >= 0.0 && options.crf <= kMaxCrf)) {
        throw Error(ErrorCode::bad_input,
                    fmt::format("crf {}, 0 to {} is wanted", options.crf, kMaxCrf));
    }
    if (std::find(kPresets.begin(), kPresets.end(), options.preset) == kPresets.end()) {
        throw Error(ErrorCode::bad_input,
                    fmt::format("preset '{}' is not known, one of {} is wanted", options.preset,
                                fmt::join(kPresets, ", ")));
    }
    if (options.threads < 0) {
        throw Error(ErrorCode::bad_input,
                    fmt::format("{} encoder threads, 0 or more are wanted", options.threads));
    }
}

void release_frame(void* opaque, uint8_t* /*data*/) {
    delete static_cast<VideoFramePtr*>(opaque);
}

// libav may read but never write through it, which the flag states.
AVBufferRef* hold(const VideoFramePtr& frame, const uint8_t* plane, size_t size) {
    auto owner = std::make_unique<VideoFramePtr>(frame);
    AVBufferRef* buffer = av_buffer_create(const_cast<uint8_t*>(plane), size, release_frame,
                                           owner.get(), AV_BUFFER_FLAG_READONLY);
    if (buffer == nullptr) throw std::bad_alloc();
    static_cast<void>(owner.release());
    return buffer;
}

size_t plane_bytes(int rows, int stride, int width) {
    return static_cast<size_t>(rows - 1) * static_cast<size_t>(stride) + static_cast<size_t>(width);
}

media::AvFramePtr wrap(const VideoFramePtr& frame) {
    media::AvFramePtr wrapped = media::make_frame();
    wrapped->format = AV_PIX_FMT_NV12;
    wrapped->width = frame->width;
    wrapped->height = frame->height;
    wrapped->buf[0] =
        hold(frame, frame->y, plane_bytes(frame->height, frame->y_stride, frame->width));
    wrapped->buf[1] =
        hold(frame, frame->uv, plane_bytes(frame->height / 2, frame->uv_stride, frame->width));
    wrapped->data[0] = wrapped->buf[0]->data;
    wrapped->data[1] = wrapped->buf[1]->data;
    wrapped->linesize[0] = frame->y_stride;
    wrapped->linesize[1] = frame->uv_stride;
    wrapped->pts = frame->index;
    wrapped->color_primaries = AVCOL_PRI_BT709;
    wrapped->color_trc = AVCOL_TRC_BT709;
    wrapped->colorspace = AVCOL_SPC_BT709;
    wrapped->color_range = AVCOL_RANGE_MPEG;
    wrapped->chroma_location = AVCHROMA_LOC_CENTER;
    return wrapped;
}

}  // namespace

H264Encoder::H264Encoder(const VideoOptions& options, bool global_header)
    : packet_(media::make_packet()) {
    check_options(options);
    const AVCodec* codec = avcodec_find_encoder_by_name("libx264");
    if (codec == nullptr) throw Error(ErrorCode::runtime, "libav here has no libx264 encoder");
    context_.reset(avcodec_alloc_context3(codec));
    if (!context_) throw std::bad_alloc();
    AVCodecContext& c = *context_;
    c.width = options.width;
    c.height = options.height;
    c.pix_fmt = AV_PIX_FMT_NV12;
    c.time_base = av_inv_q(media::to_av(options.fps));
    c.framerate = media::to_av(options.fps);
    c.sample_aspect_ratio = {1, 1};
    c.gop_size =
        std::max(1, static_cast<int>(std::lround(kKeyframeSeconds * options.fps.to_double())));
    c.color_primaries = AVCOL_PRI_BT709;
    c.color_trc = AVCOL_TRC_BT709;
    c.colorspace = AVCOL_SPC_BT709;
    c.color_range = AVCOL_RANGE_MPEG;
    c.chroma_sample_location = AVCHROMA_LOC_CENTER;
    c.thread_count = options.threads;
    c.flags |= AV_CODEC_FLAG_BITEXACT;
    if (global_header) c.flags |= AV_CODEC_FLAG_GLOBAL_HEADER;

    AVDictionary* settings = nullptr;
    av_dict_set(&settings, "preset", options.preset.c_str(), 0);
    av_dict_set(&settings, "crf", fmt::format("{}", options.crf).c_str(), 0);
    const int result = avcodec_open2(&c, codec, &settings);
    av_dict_free(&settings);
    if (result < 0) {
        throw Error(ErrorCode::bad_input,
                    fmt::format("libx264 refuses {}x{} at {}/{} fps, crf {}, preset {}: {}",
                                options.width, options.height, options.fps.num, options.fps.den,
                                options.crf, options.preset, media::av_reason(result)));
    }
}

void H264Encoder::encode(const VideoFramePtr& frame, const PacketSink& sink) {
    send(wrap(frame).get(), sink);
}

void H264Encoder::finish(const PacketSink& sink) {
    send(nullptr, sink);
}

void H264Encoder::send(const AVFrame* frame, const PacketSink& sink) {
    int result = avcodec_send_frame(context_.get(), frame);
    while (result >= 0) {
        result = avcodec_receive_packet(context_.get(), packet_.get());
        if (result == AVERROR(EAGAIN) || result == AVERROR_EOF) return;
        if (result < 0) break;
        packet_->duration = 1;
        sink(*packet_);
        av_packet_unref(packet_.get());
    }
    throw Error(ErrorCode::runtime, fmt::format("libx264 failed: {}", media::av_reason(result)));
}

}  // namespace newscaster::encode
