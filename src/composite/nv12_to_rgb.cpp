#include <algorithm>

#include "composite/compositor.h"

namespace newscaster::composite {

namespace {

// BT.709 limited to full range, in 1/65536.
constexpr int kLuma = 76309;     // 255 / 219
constexpr int kRedV = 117489;    // 2 (1 - 0.2126) 255 / 224
constexpr int kGreenU = -13975;  // -2 (1 - 0.0722) 0.0722 / 0.7152 255 / 224
constexpr int kGreenV = -34925;  // -2 (1 - 0.2126) 0.2126 / 0.7152 255 / 224
constexpr int kBlueU = 138438;   // 2 (1 - 0.0722) 255 / 224

uint8_t to_byte(int value) {
    return static_cast<uint8_t>(std::clamp((value + 32768) >> 16, 0, 255));
}

}  // namespace

RgbImage nv12_to_rgb(const Nv12Image& image) {
    const auto width = static_cast<size_t>(image.width);
    const auto height = static_cast<size_t>(image.height);
    RgbImage out{image.width, image.height, std::vector<uint8_t>(3 * width * height)};
    for (size_t y = 0; y < height; ++y) {
        const uint8_t* luma = &image.y[y * width];
        const uint8_t* chroma = &image.uv[y / 2 * width];
        uint8_t* target = &out.pixels[3 * y * width];
        for (size_t x = 0; x < width; ++x, target += 3) {
            const int light = kLuma * (luma[x] - 16);
            const int u = chroma[x & ~size_t{1}] - 128;
            const int v = chroma[x | 1U] - 128;
            target[0] = to_byte(light + kRedV * v);
            target[1] = to_byte(light + kGreenU * u + kGreenV * v);
            target[2] = to_byte(light + kBlueU * u);
        }
    }
    return out;
}

}  // namespace newscaster::composite
