#include "media/image.h"

#include <fmt/format.h>

extern "C" {
#include <libavutil/dict.h>
#include <libavutil/imgutils.h>
#include <libavutil/pixdesc.h>
}

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "core/file.h"
#include "media/frame_reader.h"
#include "media/frame_to_rgb.h"
#include "media/input.h"
#include "newscaster/error.h"

namespace newscaster::media {

namespace {

constexpr std::string_view kWanted = "a picture";

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

}  // namespace

bool is_clip(const std::filesystem::path& file, const PictureLimits& limits) {
    const std::string name = file.string();
    const std::string what(kWanted);
    Input input = open_input(name, what, Analysis::none);
    if (is_picture_format(*input.format->iformat)) return false;
    analyse_streams(input, name, what);
    FrameReader reader(input, name, limits);
    return reader.next() && reader.next();
}

namespace {

AvFramePtr decode_picture(const std::string& name, const PictureLimits& limits) {
    const std::string what(kWanted);
    // Analysing would decode the picture before its size is checked; its header says enough.
    Input input = open_input(name, what, Analysis::none);
    const bool picture = is_picture_format(*input.format->iformat);
    if (!picture) analyse_streams(input, name, what);
    FrameReader reader(input, name, limits);
    AvFramePtr frame = reader.next();
    if (!frame) fail_to_decode(name, av_reason(AVERROR_INVALIDDATA));
    refuse_cmyk(reader.codec(), *frame, name);
    if (!picture && reader.next()) {
        throw Error(ErrorCode::bad_input,
                    fmt::format("{}: is a video, a still picture is wanted", name));
    }
    return frame;
}

// EXIF orientation, 1 (upright) to 8.
int orientation_of(const AVFrame& frame) {
    const AVDictionaryEntry* entry = av_dict_get(frame.metadata, "Orientation", nullptr, 0);
    const int value = entry != nullptr ? std::atoi(entry->value) : 1;
    return value >= 1 && value <= 8 ? value : 1;
}

}  // namespace

RgbImage shrink(RgbImage image, int longest) {
    const int side = std::max(image.width, image.height);
    if (longest == 0 || side <= longest) return image;
    const auto scaled = [&](int extent) {
        const double share = static_cast<double>(longest) / static_cast<double>(side);
        return std::max(1, static_cast<int>(std::lround(share * extent)));
    };
    RgbImage small{scaled(image.width), scaled(image.height), {}};
    small.pixels.resize(3 * static_cast<size_t>(small.width) * static_cast<size_t>(small.height));
    const SwsPtr scaler(sws_getContext(
        image.width, image.height, AV_PIX_FMT_RGB24, small.width, small.height, AV_PIX_FMT_RGB24,
        SWS_AREA | SWS_ACCURATE_RND | SWS_BITEXACT, nullptr, nullptr, nullptr));
    if (!scaler) throw std::bad_alloc();
    const std::array<const uint8_t*, 4> from{image.pixels.data(), nullptr, nullptr, nullptr};
    const std::array<int, 4> from_stride{3 * image.width, 0, 0, 0};
    const std::array<uint8_t*, 4> to{small.pixels.data(), nullptr, nullptr, nullptr};
    const std::array<int, 4> to_stride{3 * small.width, 0, 0, 0};
    sws_scale(scaler.get(), from.data(), from_stride.data(), 0, image.height, to.data(),
              to_stride.data());
    return small;
}

RgbImage read_image(const std::filesystem::path& file, const PictureLimits& limits,
                    const Backdrop& backdrop) {
    const AvFramePtr frame = decode_picture(file.string(), limits);
    const int orientation = orientation_of(*frame);
    // Pictures that name no matrix are JFIF-like.
    RgbImage image =
        RgbConverter(backdrop, orientation)
            .convert(*frame, frame->width, frame->height, SWS_CS_ITU601, file.string());
    return shrink(make_upright(std::move(image), orientation), limits.shrink_to);
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
