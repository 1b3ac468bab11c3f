#include "media/frame_to_rgb.h"

#include <fmt/format.h>

extern "C" {
#include <libavutil/pixdesc.h>
}

#include <array>
#include <new>
#include <utility>
#include <vector>

#include "newscaster/error.h"

namespace newscaster::media {

namespace {

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

// Interleaved pixels without gaps between rows; Value: of the target's components.
template <typename Value>
std::vector<Value> convert(const AVFrame& frame, const PixelLayout& layout, AVPixelFormat target,
                           const RgbImage& size, int untagged_matrix) {
    const SwsPtr scaler(sws_getContext(
        frame.width, frame.height, layout.format, size.width, size.height, target,
        SWS_BICUBIC | SWS_ACCURATE_RND | SWS_FULL_CHR_H_INT | SWS_FULL_CHR_H_INP | SWS_BITEXACT,
        nullptr, nullptr, nullptr));
    if (!scaler) throw std::bad_alloc();
    const int matrix =
        frame.colorspace == AVCOL_SPC_UNSPECIFIED || frame.colorspace == AVCOL_SPC_RGB
            ? untagged_matrix
            : static_cast<int>(frame.colorspace);
    const int* coefficients = sws_getCoefficients(matrix);
    // Fails for RGB sources, which need no matrix.
    sws_setColorspaceDetails(scaler.get(), coefficients, layout.full_range ? 1 : 0,
                             sws_getCoefficients(SWS_CS_ITU601), 1, 0, 1 << 16, 1 << 16);
    const size_t row = static_cast<size_t>(size.width) * (target == AV_PIX_FMT_RGBA ? 4 : 3);
    std::vector<Value> pixels(row * static_cast<size_t>(size.height));
    std::array<uint8_t*, 4> planes{reinterpret_cast<uint8_t*>(pixels.data()), nullptr, nullptr,
                                   nullptr};
    const std::array<int, 4> strides{static_cast<int>(row * sizeof(Value)), 0, 0, 0};
    sws_scale(scaler.get(), frame.data, frame.linesize, 0, frame.height, planes.data(),
              strides.data());
    return pixels;
}

std::vector<uint8_t> blend(const std::vector<uint8_t>& rgba, const RgbImage& behind) {
    std::vector<uint8_t> rgb(rgba.size() / 4 * 3);
    for (size_t i = 0; i < rgba.size() / 4; ++i) {
        const int alpha = rgba[4 * i + 3];
        for (size_t c = 0; c < 3; ++c) {
            const int value = rgba[4 * i + c] * alpha + behind.pixels[3 * i + c] * (255 - alpha);
            rgb[3 * i + c] = static_cast<uint8_t>((value + 127) / 255);
        }
    }
    return rgb;
}

// Makes upright pictures lie as those that `orientation` makes upright.
int undone(int orientation) {
    if (orientation == 6) return 8;
    return orientation == 8 ? 6 : orientation;
}

}  // namespace

const RgbImage& RgbConverter::behind(int width, int height) {
    if (behind_.width != width || behind_.height != height) {
        const bool turned = orientation_ >= 5;
        behind_ = make_upright(
            turned ? backdrop_.covering(height, width) : backdrop_.covering(width, height),
            undone(orientation_));
    }
    return behind_;
}

RgbImage RgbConverter::convert(const AVFrame& frame, int width, int height, int untagged_matrix,
                               const std::string& name) {
    const PixelLayout layout = layout_of(frame);
    if (backdrop_.wanted() && (!layout.alpha || is_hdr(frame))) {
        throw Error(ErrorCode::bad_input,
                    fmt::format("{}: found pixels that are all opaque ({}), wanted transparent "
                                "parts for the background to show through",
                                name, av_get_pix_fmt_name(layout.format)));
    }
    RgbImage image{width, height, {}};
    if (is_hdr(frame)) {
        const HdrColours colours = hdr_colours_of(frame);
        if (!tone_map_ || tone_map_->colours() != colours) tone_map_.emplace(colours);
        const auto signal =
            media::convert<uint16_t>(frame, layout, AV_PIX_FMT_RGB48, image, SWS_CS_BT2020);
        image.pixels.resize(signal.size());
        tone_map_->apply(signal, image.pixels);
    } else if (layout.alpha) {
        image.pixels =
            blend(media::convert<uint8_t>(frame, layout, AV_PIX_FMT_RGBA, image, untagged_matrix),
                  behind(width, height));
    } else {
        image.pixels =
            media::convert<uint8_t>(frame, layout, AV_PIX_FMT_RGB24, image, untagged_matrix);
    }
    return image;
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

}  // namespace newscaster::media
