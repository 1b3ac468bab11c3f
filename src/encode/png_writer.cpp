#include "encode/png_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "encode/frame_check.h"
#include "media/image.h"
#include "newscaster/error.h"

namespace newscaster::encode {

namespace {

constexpr int kFractionBits = 16;

constexpr int fixed(double value) {
    return static_cast<int>(value * (1 << kFractionBits) + (value >= 0 ? 0.5 : -0.5));
}

constexpr double kKr = 0.2126;
constexpr double kKb = 0.0722;
constexpr double kKg = 1.0 - kKr - kKb;
constexpr double kLumaScale = 255.0 / 219.0;
constexpr double kChromaScale = 255.0 / 224.0;

constexpr int kLuma = fixed(kLumaScale);
constexpr int kRedFromCr = fixed(2.0 * (1.0 - kKr) * kChromaScale);
constexpr int kBlueFromCb = fixed(2.0 * (1.0 - kKb) * kChromaScale);
constexpr int kGreenFromCb = fixed(-2.0 * (1.0 - kKb) * kKb / kKg * kChromaScale);
constexpr int kGreenFromCr = fixed(-2.0 * (1.0 - kKr) * kKr / kKg * kChromaScale);

uint8_t to_level(int value) {
    return static_cast<uint8_t>(
        std::clamp((value + (1 << (kFractionBits - 1))) >> kFractionBits, 0, 255));
}

}  // namespace

PngWriter::PngWriter(const WriterOptions& options)
    : folder_(options.output), width_(options.video.width), height_(options.video.height) {
    check_size(width_, height_);
}

void PngWriter::write_video(const VideoFramePtr& frame) {
    check_frame(*frame, next_frame_, width_, height_);
    media::write_png(folder_.temporary() / fmt::format("{:06}.png", next_frame_), to_rgb(*frame));
    ++next_frame_;
}

void PngWriter::write_audio_packet(const std::shared_ptr<AVPacket>& /*packet*/) {
    throw Error(ErrorCode::runtime, "pictures hold no sound");
}

void PngWriter::write_audio_frame(const std::shared_ptr<AVFrame>& /*frame*/) {
    throw Error(ErrorCode::runtime, "pictures hold no sound");
}

void PngWriter::finish() {
    folder_.commit();
}

RgbImage to_rgb(const VideoFrame& frame) {
    RgbImage image{frame.width, frame.height, {}};
    image.pixels.resize(static_cast<size_t>(frame.width) * static_cast<size_t>(frame.height) * 3);
    uint8_t* target = image.pixels.data();
    for (int row = 0; row < frame.height; ++row) {
        const uint8_t* luma = frame.y + static_cast<ptrdiff_t>(row) * frame.y_stride;
        const uint8_t* chroma = frame.uv + static_cast<ptrdiff_t>(row / 2) * frame.uv_stride;
        for (int x = 0; x < frame.width; ++x, target += 3) {
            const int y = kLuma * (luma[x] - 16);
            const int cb = chroma[x / 2 * 2] - 128;
            const int cr = chroma[x / 2 * 2 + 1] - 128;
            target[0] = to_level(y + kRedFromCr * cr);
            target[1] = to_level(y + kGreenFromCb * cb + kGreenFromCr * cr);
            target[2] = to_level(y + kBlueFromCb * cb);
        }
    }
    return image;
}

}  // namespace newscaster::encode
