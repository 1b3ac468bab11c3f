#include "media/backdrop.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <new>

#include "media/av_ptr.h"
#include "media/image.h"
#include "newscaster/error.h"

namespace newscaster::media {

namespace {

constexpr size_t kHexDigits = 6;

std::array<uint8_t, 3> colour_of(const std::string& text) {
    uint32_t value = 0;
    const char* begin = text.data() + 1;
    const char* end = text.data() + text.size();
    const auto parsed = std::from_chars(begin, end, value, 16);
    if (text.size() != kHexDigits + 1 || parsed.ec != std::errc{} || parsed.ptr != end) {
        throw Error(ErrorCode::bad_input,
                    fmt::format("background: found \"{}\", wanted a colour like #00b140 or the "
                                "file of a picture",
                                text));
    }
    return {static_cast<uint8_t>(value >> 16U), static_cast<uint8_t>(value >> 8U),
            static_cast<uint8_t>(value)};
}

// The largest part from the middle that is shaped like width x height.
struct Part {
    int x, y, width, height;
};
Part middle_of(const RgbImage& image, int width, int height) {
    const double scale = std::max(static_cast<double>(width) / image.width,
                                  static_cast<double>(height) / image.height);
    const auto side = [&](int wanted, int there) {
        return std::clamp(static_cast<int>(std::lround(wanted / scale)), 1, there);
    };
    const int w = side(width, image.width);
    const int h = side(height, image.height);
    return {(image.width - w) / 2, (image.height - h) / 2, w, h};
}

}  // namespace

Backdrop Backdrop::of(const std::string& text) {
    Backdrop backdrop;
    backdrop.wanted_ = true;
    if (text.starts_with('#')) {
        backdrop.colour_ = colour_of(text);
    } else {
        backdrop.image_ = read_image(text);
    }
    return backdrop;
}

RgbImage Backdrop::covering(int width, int height) const {
    RgbImage out{width, height, {}};
    const size_t pixels = static_cast<size_t>(width) * static_cast<size_t>(height);
    out.pixels.resize(3 * pixels);
    if (!image_) {
        for (size_t i = 0; i < pixels; ++i) {
            std::ranges::copy(colour_, out.pixels.begin() + static_cast<ptrdiff_t>(3 * i));
        }
        return out;
    }
    const Part part = middle_of(*image_, width, height);
    const bool smaller = part.width > width;
    const SwsPtr scaler(
        sws_getContext(part.width, part.height, AV_PIX_FMT_RGB24, width, height, AV_PIX_FMT_RGB24,
                       (smaller ? SWS_AREA : SWS_BICUBIC) | SWS_ACCURATE_RND | SWS_BITEXACT,
                       nullptr, nullptr, nullptr));
    if (!scaler) throw std::bad_alloc();
    const int from_row = 3 * image_->width;
    const auto first = static_cast<ptrdiff_t>(part.y) * from_row + ptrdiff_t{3} * part.x;
    const std::array<const uint8_t*, 4> from{image_->pixels.data() + first, nullptr, nullptr,
                                             nullptr};
    const std::array<int, 4> from_stride{from_row, 0, 0, 0};
    const std::array<uint8_t*, 4> to{out.pixels.data(), nullptr, nullptr, nullptr};
    const std::array<int, 4> to_stride{3 * width, 0, 0, 0};
    sws_scale(scaler.get(), from.data(), from_stride.data(), 0, part.height, to.data(),
              to_stride.data());
    return out;
}

}  // namespace newscaster::media
