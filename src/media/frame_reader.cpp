#include "media/frame_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <new>
#include <string_view>
#include <utility>

#include "newscaster/error.h"

namespace newscaster::media {

namespace {

// The decoder asks for memory once it knows the size and before it unpacks anything: the moment to
// refuse a small file that claims, or holds, a huge picture.
int allocate_within_limits(AVCodecContext* decoder, AVFrame* frame, int flags) {
    auto& check = *static_cast<SizeCheck*>(decoder->opaque);
    if (std::max(frame->width, frame->height) > check.limits.side_px ||
        int64_t{frame->width} * frame->height > check.limits.pixels) {
        check.refused_width = frame->width;
        check.refused_height = frame->height;
        return AVERROR(EINVAL);
    }
    return avcodec_default_get_buffer2(decoder, frame, flags);
}

// Decoders that ask for the picture's memory before they take any other by its size, so that
// allocate_within_limits can say what was refused.
bool asks_first(AVCodecID codec) {
    constexpr std::array kCodecs{AV_CODEC_ID_PNG,  AV_CODEC_ID_APNG, AV_CODEC_ID_MJPEG,
                                 AV_CODEC_ID_WEBP, AV_CODEC_ID_BMP,  AV_CODEC_ID_GIF,
                                 AV_CODEC_ID_TIFF};
    return std::find(kCodecs.begin(), kCodecs.end(), codec) != kCodecs.end();
}

// WebM keeps transparency beside the pictures, where libav's own VP8 and VP9 decoders overlook it.
const AVCodec* find_decoder(const AVStream& stream) {
    const AVCodecID id = stream.codecpar->codec_id;
    const auto* mode = av_dict_get(stream.metadata, "alpha_mode", nullptr, 0);
    if (mode != nullptr && std::string_view(mode->value) == "1") {
        const AVCodec* codec = nullptr;
        if (id == AV_CODEC_ID_VP9) codec = avcodec_find_decoder_by_name("libvpx-vp9");
        if (id == AV_CODEC_ID_VP8) codec = avcodec_find_decoder_by_name("libvpx");
        if (codec != nullptr) return codec;
    }
    return avcodec_find_decoder(id);
}

AvCodecPtr open_decoder(const AVStream& stream, const std::string& name, SizeCheck& check) {
    const AVCodec* codec = find_decoder(stream);
    if (codec == nullptr) {
        throw Error(ErrorCode::bad_input, fmt::format("{}: picture codec {} is not supported", name,
                                                      avcodec_get_name(stream.codecpar->codec_id)));
    }
    AvCodecPtr decoder(avcodec_alloc_context3(codec));
    if (!decoder) throw std::bad_alloc();
    int result = avcodec_parameters_to_context(decoder.get(), stream.codecpar);
    decoder->thread_count = 1;
    decoder->opaque = &check;
    decoder->get_buffer2 = allocate_within_limits;
    if (!asks_first(codec->id)) decoder->max_pixels = check.limits.pixels;
    // Half a picture is no picture; libav's other decoders see to that themselves.
    if (codec->id == AV_CODEC_ID_MJPEG) decoder->err_recognition |= AV_EF_EXPLODE;
    if (result >= 0) result = avcodec_open2(decoder.get(), codec, nullptr);
    if (result < 0) fail_to_decode(name, av_reason(result));
    return decoder;
}

}  // namespace

void fail_to_decode(const std::string& name, const std::string& reason) {
    throw Error(ErrorCode::bad_input,
                fmt::format("{}: the picture cannot be decoded: {}", name, reason));
}

FrameReader::FrameReader(Input& input, std::string name, const PictureLimits& limits)
    : input_(input), name_(std::move(name)), check_{.limits = limits} {
    index_ = av_find_best_stream(input.format.get(), AVMEDIA_TYPE_VIDEO, -1, -1, nullptr, 0);
    if (index_ < 0) {
        throw Error(ErrorCode::bad_input, fmt::format("{}: holds no picture", name_));
    }
    decoder_ = open_decoder(stream(), name_, check_);
}

AvFramePtr FrameReader::next() {
    AvFramePtr frame = make_frame();
    for (;;) {
        const int result = avcodec_receive_frame(decoder_.get(), frame.get());
        if (result >= 0) return frame;
        if (result == AVERROR_EOF) return nullptr;
        if (result != AVERROR(EAGAIN)) refuse(result);
        feed();
    }
}

void FrameReader::feed() {
    av_packet_unref(packet_.get());
    bool more = true;
    do {
        more = av_read_frame(input_.format.get(), packet_.get()) >= 0;
    } while (more && packet_->stream_index != index_);
    const int result = avcodec_send_packet(decoder_.get(), more ? packet_.get() : nullptr);
    if (result < 0) refuse(result);
}

void FrameReader::refuse(int result) const {
    if (check_.refused_width == 0) {
        // libav turns down the largest sizes itself, as data that make no sense.
        fail_to_decode(name_, av_reason(result) + "; it is cut, damaged or far too large");
    }
    throw Error(ErrorCode::bad_input,
                fmt::format("{}: the picture is {}x{} pixels, at most {} a side and {} in all "
                            "are wanted",
                            name_, check_.refused_width, check_.refused_height,
                            check_.limits.side_px, check_.limits.pixels));
}

}  // namespace newscaster::media
