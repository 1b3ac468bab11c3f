#include "media/video_source.h"

#include <fmt/format.h>

extern "C" {
#include <libavutil/imgutils.h>
#include <libavutil/pixdesc.h>
}

#include <algorithm>
#include <array>
#include <cmath>
#include <new>
#include <utility>

#include "media/input.h"
#include "newscaster/error.h"

namespace newscaster::media {

namespace {

constexpr int kLongestSide = 16384;
constexpr int kHdHeight = 720;  // untagged video from here on is BT.709, below BT.601

[[noreturn]] void fail(const std::string& name, const std::string& reason) {
    throw Error(ErrorCode::bad_input,
                fmt::format("{}: the video cannot be decoded: {}", name, reason));
}

ColourCoding colours_of(const AVFrame& frame) {
    ColourCoding colours;
    const bool untagged = frame.colorspace == AVCOL_SPC_UNSPECIFIED;
    if (frame.colorspace == AVCOL_SPC_BT470BG || frame.colorspace == AVCOL_SPC_SMPTE170M ||
        (untagged && frame.height < kHdHeight)) {
        colours.kr = 0.299;
        colours.kb = 0.114;
    } else if (frame.colorspace == AVCOL_SPC_BT2020_NCL) {
        colours.kr = 0.2627;
        colours.kb = 0.0593;
    }
    colours.full_range =
        frame.color_range == AVCOL_RANGE_JPEG || frame.format == AV_PIX_FMT_YUVJ420P;
    return colours;
}

AVStream* video_stream(const Input& input, const std::string& name) {
    const int index =
        av_find_best_stream(input.format.get(), AVMEDIA_TYPE_VIDEO, -1, -1, nullptr, 0);
    AVStream* stream = index < 0 ? nullptr : input.format->streams[index];
    if (stream == nullptr || (stream->disposition & AV_DISPOSITION_ATTACHED_PIC) != 0) {
        throw Error(ErrorCode::bad_input, fmt::format("{}: holds no video stream", name));
    }
    return stream;
}

class LibavVideo final : public VideoSource {
  public:
    explicit LibavVideo(const std::string& path)
        : name_(display_name(path)),
          input_(open_input(path, "a video file")),
          stream_(video_stream(input_, name_)) {
        open_decoder();
        const AVCodecParameters& codec = *stream_->codecpar;
        const AVRational fps = av_guess_frame_rate(input_.format.get(), stream_, nullptr);
        if (codec.width <= 0 || codec.height <= 0 || fps.num <= 0 || fps.den <= 0) {
            fail(name_, "it has no picture size or no frame rate");
        }
        if (std::max(codec.width, codec.height) > kLongestSide) {
            throw Error(ErrorCode::bad_input,
                        fmt::format("{}: found {}x{} pixels, wanted at most {} a side", name_,
                                    codec.width, codec.height, kLongestSide));
        }
        format_ = {codec.width, codec.height, from_av(fps), avcodec_get_name(codec.codec_id), {}};
        ahead_ = decode();
        if (!ahead_) fail(name_, "it holds no pictures");
        format_.colours = ahead_->colours;
    }

    [[nodiscard]] const VideoFormat& format() const override { return format_; }

    std::optional<VideoPicture> read() override {
        return std::exchange(ahead_, ahead_ ? decode() : std::nullopt);
    }

  private:
    void open_decoder() {
        const AVCodec* codec = avcodec_find_decoder(stream_->codecpar->codec_id);
        if (codec == nullptr) {
            throw Error(ErrorCode::bad_input,
                        fmt::format("{}: video codec {} is not supported", name_,
                                    avcodec_get_name(stream_->codecpar->codec_id)));
        }
        decoder_.reset(avcodec_alloc_context3(codec));
        if (!decoder_) throw std::bad_alloc();
        int result = avcodec_parameters_to_context(decoder_.get(), stream_->codecpar);
        decoder_->max_pixels = int64_t{kLongestSide} * kLongestSide;
        decoder_->thread_count = 1;  // callers decode several files at once
        if (result >= 0) result = avcodec_open2(decoder_.get(), codec, nullptr);
        if (result < 0) fail(name_, av_reason(result));
    }

    std::optional<VideoPicture> decode() {
        AvFramePtr frame = make_frame();
        for (;;) {
            const int result = avcodec_receive_frame(decoder_.get(), frame.get());
            if (result >= 0) {
                if (frame->decode_error_flags != 0) {
                    fail(name_, fmt::format("frame {} is damaged", next_));
                }
                return picture_of(*frame);
            }
            if (result == AVERROR_EOF) return std::nullopt;
            if (result != AVERROR(EAGAIN)) fail(name_, av_reason(result));
            feed();
        }
    }

    void feed() {
        int result = 0;
        do {
            av_packet_unref(packet_.get());
            result = av_read_frame(input_.format.get(), packet_.get());
        } while (result >= 0 && packet_->stream_index != stream_->index);
        const int io_error = input_.io->error;
        if (io_error < 0 && io_error != AVERROR_EOF) {
            throw Error(ErrorCode::io,
                        fmt::format("{}: read failed: {}", name_, av_reason(io_error)));
        }
        if (result < 0 && result != AVERROR_EOF) fail(name_, av_reason(result));
        const int sent = avcodec_send_packet(decoder_.get(), result < 0 ? nullptr : packet_.get());
        if (sent < 0) fail(name_, fmt::format("frame {}: {}", next_, av_reason(sent)));
    }

    VideoPicture picture_of(const AVFrame& frame) {
        if (frame.width != format_.width || frame.height != format_.height) {
            throw Error(ErrorCode::bad_input,
                        fmt::format("{}: frame {} is {}x{}, the first one {}x{}", name_, next_,
                                    frame.width, frame.height, format_.width, format_.height));
        }
        VideoPicture picture;
        picture.index = next_++;
        picture.width = frame.width;
        picture.height = frame.height;
        picture.colours = colours_of(frame);
        const auto chroma_width = static_cast<size_t>(picture.chroma_width());
        const auto chroma_height = static_cast<size_t>((frame.height + 1) / 2);
        picture.y.resize(static_cast<size_t>(frame.width) * static_cast<size_t>(frame.height));
        picture.u.resize(chroma_width * chroma_height);
        picture.v.resize(chroma_width * chroma_height);
        std::array<uint8_t*, 4> planes{picture.y.data(), picture.u.data(), picture.v.data(),
                                       nullptr};
        std::array<int, 4> strides{frame.width, picture.chroma_width(), picture.chroma_width(), 0};
        const auto format = static_cast<AVPixelFormat>(frame.format);
        if (format == AV_PIX_FMT_YUV420P || format == AV_PIX_FMT_YUVJ420P) {
            std::array<const uint8_t*, 4> from{frame.data[0], frame.data[1], frame.data[2],
                                               nullptr};
            av_image_copy(planes.data(), strides.data(), from.data(), frame.linesize,
                          AV_PIX_FMT_YUV420P, frame.width, frame.height);
            return picture;
        }
        convert(frame, picture, planes, strides);
        return picture;
    }

    // Other layouts, depths and RGB: to 4:2:0 in the same range; RGB becomes BT.709 limited.
    void convert(const AVFrame& frame, VideoPicture& picture, const std::array<uint8_t*, 4>& planes,
                 const std::array<int, 4>& strides) {
        const auto format = static_cast<AVPixelFormat>(frame.format);
        const auto* descriptor = av_pix_fmt_desc_get(format);
        const bool rgb = descriptor != nullptr && (descriptor->flags & AV_PIX_FMT_FLAG_RGB) != 0;
        if (!scaler_) {
            scaler_.reset(sws_getContext(
                frame.width, frame.height, format, frame.width, frame.height, AV_PIX_FMT_YUV420P,
                SWS_BICUBIC | SWS_ACCURATE_RND, nullptr, nullptr, nullptr));
            if (!scaler_) fail(name_, "its pixel format is not supported");
        }
        if (rgb) picture.colours = {};
        const int* table = sws_getCoefficients(SWS_CS_ITU709);
        const int from_range = rgb || picture.colours.full_range ? 1 : 0;
        const int to_range = picture.colours.full_range ? 1 : 0;
        sws_setColorspaceDetails(scaler_.get(), table, from_range, table, to_range, 0, 1 << 16,
                                 1 << 16);
        sws_scale(scaler_.get(), frame.data, frame.linesize, 0, frame.height, planes.data(),
                  strides.data());
    }

    std::string name_;
    Input input_;
    AVStream* stream_;
    AvCodecPtr decoder_;
    AvPacketPtr packet_ = make_packet();
    SwsPtr scaler_;
    VideoFormat format_;
    std::optional<VideoPicture> ahead_;
    int64_t next_ = 0;
};

uint8_t to_byte(float value) {
    return static_cast<uint8_t>(std::clamp(value + 0.5F, 0.0F, 255.0F));
}

}  // namespace

std::unique_ptr<VideoSource> VideoSource::open(const std::string& path) {
    return std::make_unique<LibavVideo>(path);
}

RgbImage to_rgb(const VideoPicture& picture, const Box& box) {
    const ColourCoding& c = picture.colours;
    const double kg = 1.0 - c.kr - c.kb;
    const double chroma_scale = c.full_range ? 1.0 : 255.0 / 224.0;
    const auto red = static_cast<float>(2.0 * (1.0 - c.kr) * chroma_scale);
    const auto blue = static_cast<float>(2.0 * (1.0 - c.kb) * chroma_scale);
    const auto green_u = static_cast<float>(2.0 * (1.0 - c.kb) * c.kb / kg * chroma_scale);
    const auto green_v = static_cast<float>(2.0 * (1.0 - c.kr) * c.kr / kg * chroma_scale);
    const float luma_scale = c.full_range ? 1.0F : 255.0F / 219.0F;
    const float black = c.full_range ? 0.0F : 16.0F;
    RgbImage image{box.width(), box.height(), {}};
    image.pixels.resize(static_cast<size_t>(box.width()) * static_cast<size_t>(box.height()) * 3);
    uint8_t* to = image.pixels.data();
    for (int y = box.y0; y < box.y1; ++y) {
        const uint8_t* luma_row =
            picture.y.data() + static_cast<size_t>(y) * static_cast<size_t>(picture.width);
        const auto pairs = static_cast<size_t>(y / 2) * static_cast<size_t>(picture.chroma_width());
        for (int x = box.x0; x < box.x1; ++x) {
            const size_t pair = pairs + static_cast<size_t>(x / 2);
            const float luma = (static_cast<float>(luma_row[x]) - black) * luma_scale;
            const float u = static_cast<float>(picture.u[pair]) - 128.0F;
            const float v = static_cast<float>(picture.v[pair]) - 128.0F;
            to[0] = to_byte(luma + red * v);
            to[1] = to_byte(luma - green_u * u - green_v * v);
            to[2] = to_byte(luma + blue * u);
            to += 3;
        }
    }
    return image;
}

}  // namespace newscaster::media
