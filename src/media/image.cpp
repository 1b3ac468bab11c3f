#include "media/image.h"

#include <fmt/format.h>

extern "C" {
#include <libavutil/dict.h>
#include <libavutil/imgutils.h>
#include <libavutil/pixdesc.h>
}

#include <algorithm>
#include <array>
#include <cstdlib>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "core/file.h"
#include "media/input.h"
#include "newscaster/error.h"

namespace newscaster::media {

namespace {

constexpr std::string_view kWanted = "a picture";

[[noreturn]] void fail(const std::string& name, const std::string& reason) {
    throw Error(ErrorCode::bad_input,
                fmt::format("{}: the picture cannot be decoded: {}", name, reason));
}

// What the decoder may take memory for, and the size of a picture for which it got none.
struct SizeCheck {
    PictureLimits limits;
    int refused_width = 0;
    int refused_height = 0;
};

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

AvCodecPtr open_decoder(const AVStream& stream, const std::string& name, SizeCheck& check) {
    const AVCodec* codec = avcodec_find_decoder(stream.codecpar->codec_id);
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
    if (result < 0) fail(name, av_reason(result));
    return decoder;
}

// Decodes one stream frame by frame.
class FrameReader {
  public:
    FrameReader(Input& input, std::string name, const PictureLimits& limits)
        : input_(input), name_(std::move(name)), check_{.limits = limits} {
        index_ = av_find_best_stream(input.format.get(), AVMEDIA_TYPE_VIDEO, -1, -1, nullptr, 0);
        if (index_ < 0) {
            throw Error(ErrorCode::bad_input, fmt::format("{}: holds no picture", name_));
        }
        decoder_ = open_decoder(*input.format->streams[index_], name_, check_);
    }
    FrameReader(const FrameReader&) = delete;
    FrameReader& operator=(const FrameReader&) = delete;
    ~FrameReader() = default;

    // nullptr after the last.
    [[nodiscard]] AvFramePtr next() {
        AvFramePtr frame = make_frame();
        for (;;) {
            const int result = avcodec_receive_frame(decoder_.get(), frame.get());
            if (result >= 0) return frame;
            if (result == AVERROR_EOF) return nullptr;
            if (result != AVERROR(EAGAIN)) fail_to_decode(result);
            feed();
        }
    }

    [[nodiscard]] AVCodecID codec() const { return decoder_->codec_id; }

  private:
    void feed() {
        av_packet_unref(packet_.get());
        bool more = true;
        do {
            more = av_read_frame(input_.format.get(), packet_.get()) >= 0;
        } while (more && packet_->stream_index != index_);
        const int result = avcodec_send_packet(decoder_.get(), more ? packet_.get() : nullptr);
        if (result < 0) fail_to_decode(result);
    }

    [[noreturn]] void fail_to_decode(int result) const {
        if (check_.refused_width == 0) {
            // libav turns down the largest sizes itself, as data that make no sense.
            fail(name_, av_reason(result) + "; it is cut, damaged or far too large");
        }
        throw Error(ErrorCode::bad_input,
                    fmt::format("{}: the picture is {}x{} pixels, at most {} a side and {} in all "
                                "are wanted",
                                name_, check_.refused_width, check_.refused_height,
                                check_.limits.side_px, check_.limits.pixels));
    }

    Input& input_;
    std::string name_;
    int index_ = -1;
    SizeCheck check_;
    AvCodecPtr decoder_;
    AvPacketPtr packet_ = make_packet();
};

// Formats of still pictures and animations, by libav's names: "png_pipe", "webp_pipe", ...
bool is_picture_format(const AVInputFormat& format) {
    const std::string_view name(format.name);
    return name.ends_with("_pipe") || name == "gif" || name == "apng" || name == "ico";
}

// libav shows the four inks of a CMYK JPEG as colours with transparency, which no JPEG has.
void refuse_cmyk(AVCodecID codec, const AVFrame& frame, const std::string& name) {
    const auto* descriptor = av_pix_fmt_desc_get(static_cast<AVPixelFormat>(frame.format));
    if (codec != AV_CODEC_ID_MJPEG || descriptor == nullptr || descriptor->nb_components < 4) {
        return;
    }
    throw Error(
        ErrorCode::bad_input,
        fmt::format("{}: found CMYK colours, wanted RGB or grey: convert the picture first", name));
}

AvFramePtr decode_picture(const std::string& name, const PictureLimits& limits) {
    const std::string what(kWanted);
    // Analysing would decode the picture before its size is checked; its header says enough.
    Input input = open_input(name, what, Analysis::none);
    const bool picture = is_picture_format(*input.format->iformat);
    if (!picture) analyse_streams(input, name, what);
    FrameReader reader(input, name, limits);
    AvFramePtr frame = reader.next();
    if (!frame) fail(name, av_reason(AVERROR_INVALIDDATA));
    refuse_cmyk(reader.codec(), *frame, name);
    if (!picture && reader.next()) {
        throw Error(ErrorCode::bad_input,
                    fmt::format("{}: is a video, a still picture is wanted", name));
    }
    return frame;
}

struct PixelLayout {
    AVPixelFormat format;
    bool full_range;
    bool rgb;
    bool alpha;
};

// The "J" formats of old mean full range; swscale wants the plain format and the range apart.
PixelLayout layout_of(const AVFrame& frame) {
    auto format = static_cast<AVPixelFormat>(frame.format);
    bool full = frame.color_range == AVCOL_RANGE_JPEG;
    constexpr std::array<std::pair<AVPixelFormat, AVPixelFormat>, 5> kOldNames{
        {{AV_PIX_FMT_YUVJ420P, AV_PIX_FMT_YUV420P},
         {AV_PIX_FMT_YUVJ422P, AV_PIX_FMT_YUV422P},
         {AV_PIX_FMT_YUVJ444P, AV_PIX_FMT_YUV444P},
         {AV_PIX_FMT_YUVJ440P, AV_PIX_FMT_YUV440P},
         {AV_PIX_FMT_YUVJ411P, AV_PIX_FMT_YUV411P}}};
    for (const auto& [old_name, plain] : kOldNames) {
        if (format != old_name) continue;
        format = plain;
        full = true;
    }
    const AVPixFmtDescriptor* descriptor = av_pix_fmt_desc_get(format);
    const bool palette = (descriptor->flags & AV_PIX_FMT_FLAG_PAL) != 0;
    const bool rgb = palette || (descriptor->flags & AV_PIX_FMT_FLAG_RGB) != 0;
    const bool grey = descriptor->nb_components <= 2;
    const bool alpha = palette || (descriptor->flags & AV_PIX_FMT_FLAG_ALPHA) != 0;
    return {format, full || rgb || (grey && frame.color_range != AVCOL_RANGE_MPEG), rgb, alpha};
}

// 8-bit interleaved pixels, 3 or 4 bytes each, rows without gaps.
std::vector<uint8_t> convert(const AVFrame& frame, const PixelLayout& layout) {
    const AVPixelFormat target = layout.alpha ? AV_PIX_FMT_RGBA : AV_PIX_FMT_RGB24;
    const SwsPtr scaler(sws_getContext(
        frame.width, frame.height, layout.format, frame.width, frame.height, target,
        SWS_BICUBIC | SWS_ACCURATE_RND | SWS_FULL_CHR_H_INT | SWS_FULL_CHR_H_INP | SWS_BITEXACT,
        nullptr, nullptr, nullptr));
    if (!scaler) throw std::bad_alloc();
    // Pictures that name no matrix are JFIF-like: BT.601.
    const int matrix =
        frame.colorspace == AVCOL_SPC_UNSPECIFIED || frame.colorspace == AVCOL_SPC_RGB
            ? SWS_CS_ITU601
            : static_cast<int>(frame.colorspace);
    const int* coefficients = sws_getCoefficients(matrix);
    // Fails for RGB sources, which need no matrix.
    sws_setColorspaceDetails(scaler.get(), coefficients, layout.full_range ? 1 : 0,
                             sws_getCoefficients(SWS_CS_ITU601), 1, 0, 1 << 16, 1 << 16);
    const int stride = frame.width * (layout.alpha ? 4 : 3);
    std::vector<uint8_t> pixels(static_cast<size_t>(stride) * static_cast<size_t>(frame.height));
    std::array<uint8_t*, 4> planes{pixels.data(), nullptr, nullptr, nullptr};
    const std::array<int, 4> strides{stride, 0, 0, 0};
    sws_scale(scaler.get(), frame.data, frame.linesize, 0, frame.height, planes.data(),
              strides.data());
    return pixels;
}

std::vector<uint8_t> blend_over_white(const std::vector<uint8_t>& rgba) {
    std::vector<uint8_t> rgb(rgba.size() / 4 * 3);
    for (size_t i = 0; i < rgba.size() / 4; ++i) {
        const int alpha = rgba[4 * i + 3];
        for (size_t c = 0; c < 3; ++c) {
            const int value = rgba[4 * i + c] * alpha + 255 * (255 - alpha);
            rgb[3 * i + c] = static_cast<uint8_t>((value + 127) / 255);
        }
    }
    return rgb;
}

// EXIF orientation, 1 (upright) to 8.
int orientation_of(const AVFrame& frame) {
    const AVDictionaryEntry* entry = av_dict_get(frame.metadata, "Orientation", nullptr, 0);
    const int value = entry != nullptr ? std::atoi(entry->value) : 1;
    return value >= 1 && value <= 8 ? value : 1;
}

RgbImage make_upright(RgbImage image, int orientation) {
    if (orientation == 1) return image;
    const bool turned = orientation >= 5;  // rows and columns change places
    const bool mirror_x =
        orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
    const bool mirror_y =
        orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
    RgbImage upright{turned ? image.height : image.width, turned ? image.width : image.height, {}};
    upright.pixels.resize(image.pixels.size());
    for (int y = 0; y < upright.height; ++y) {
        for (int x = 0; x < upright.width; ++x) {
            int sx = turned ? y : x;
            int sy = turned ? x : y;
            if (mirror_x) sx = image.width - 1 - sx;
            if (mirror_y) sy = image.height - 1 - sy;
            const auto from = 3 * (static_cast<size_t>(sy) * static_cast<size_t>(image.width) +
                                   static_cast<size_t>(sx));
            const auto to = 3 * (static_cast<size_t>(y) * static_cast<size_t>(upright.width) +
                                 static_cast<size_t>(x));
            for (size_t c = 0; c < 3; ++c) upright.pixels[to + c] = image.pixels[from + c];
        }
    }
    return upright;
}

}  // namespace

RgbImage read_image(const std::filesystem::path& file, const PictureLimits& limits) {
    const AvFramePtr frame = decode_picture(file.string(), limits);
    const PixelLayout layout = layout_of(*frame);
    RgbImage image{frame->width, frame->height, convert(*frame, layout)};
    if (layout.alpha) image.pixels = blend_over_white(image.pixels);
    return make_upright(std::move(image), orientation_of(*frame));
}

void write_png(const std::filesystem::path& file, const RgbImage& image) {
    silence_libav();
    const AVCodec* codec = avcodec_find_encoder(AV_CODEC_ID_PNG);
    if (codec == nullptr) throw Error(ErrorCode::runtime, "libav here has no PNG encoder");
    const auto row_bytes = static_cast<size_t>(image.width) * 3;
    if (image.width <= 0 || image.height <= 0 ||
        image.pixels.size() != row_bytes * static_cast<size_t>(image.height)) {
        throw Error(ErrorCode::runtime,
                    fmt::format("{}: a picture of {}x{} pixels with {} bytes cannot be written",
                                file.string(), image.width, image.height, image.pixels.size()));
    }
    const AvCodecPtr encoder(avcodec_alloc_context3(codec));
    if (!encoder) throw std::bad_alloc();
    encoder->width = image.width;
    encoder->height = image.height;
    encoder->pix_fmt = AV_PIX_FMT_RGB24;
    encoder->time_base = {1, 1};
    encoder->thread_count = 1;
    encoder->flags |= AV_CODEC_FLAG_BITEXACT;
    const AvFramePtr frame = make_frame();
    frame->format = AV_PIX_FMT_RGB24;
    frame->width = image.width;
    frame->height = image.height;
    int result = av_frame_get_buffer(frame.get(), 0);
    if (result < 0) throw std::bad_alloc();
    av_image_copy_plane(frame->data[0], frame->linesize[0], image.pixels.data(),
                        static_cast<int>(row_bytes), static_cast<int>(row_bytes), image.height);
    const AvPacketPtr packet = make_packet();
    result = avcodec_open2(encoder.get(), codec, nullptr);
    if (result >= 0) result = avcodec_send_frame(encoder.get(), frame.get());
    if (result >= 0) result = avcodec_receive_packet(encoder.get(), packet.get());
    if (result < 0) {
        throw Error(ErrorCode::runtime,
                    fmt::format("{}: PNG encoding failed: {}", file.string(), av_reason(result)));
    }
    write_file_atomic(file,
                      std::as_bytes(std::span(packet->data, static_cast<size_t>(packet->size))));
}

}  // namespace newscaster::media
