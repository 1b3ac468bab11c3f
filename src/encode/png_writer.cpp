#include "encode/png_writer.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <system_error>

#include "encode/frame_check.h"
#include "media/image.h"
#include "newscaster/error.h"

namespace newscaster::encode {

namespace fs = std::filesystem;

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

[[noreturn]] void fail(const fs::path& folder, const std::error_code& error) {
    throw Error(ErrorCode::io,
                fmt::format("{}: cannot be written: {}", folder.string(), error.message()));
}

// "frames/" and "frames" are the same folder.
fs::path without_trailing_slash(const std::string& output) {
    const fs::path path = fs::path(output).lexically_normal();
    return path.has_filename() ? path : path.parent_path();
}

}  // namespace

PngWriter::PngWriter(const WriterOptions& options)
    : folder_(without_trailing_slash(options.output)),
      width_(options.video.width),
      height_(options.video.height) {
    static std::atomic<unsigned> counter{0};  // unique names within the process
    check_size(width_, height_);
    std::error_code error;
    if (fs::exists(folder_, error) &&
        !(fs::is_directory(folder_, error) && fs::is_empty(folder_, error))) {
        throw Error(
            ErrorCode::io,
            fmt::format("{}: exists already, a new or empty folder is wanted", folder_.string()));
    }
    const fs::path parent = folder_.has_parent_path() ? folder_.parent_path() : fs::path(".");
    fs::create_directories(parent, error);
    if (error && !fs::is_directory(parent)) fail(parent, error);
    temporary_ = parent / fmt::format(".{}.{}.{}.part", folder_.filename().string(), ::getpid(),
                                      counter.fetch_add(1));
    fs::create_directory(temporary_, error);
    if (error) fail(folder_, error);
}

PngWriter::~PngWriter() {
    if (finished_) return;
    std::error_code ignored;
    fs::remove_all(temporary_, ignored);
}

void PngWriter::write_video(const VideoFramePtr& frame) {
    check_frame(*frame, next_frame_, width_, height_);
    media::write_png(temporary_ / fmt::format("{:06}.png", next_frame_), to_rgb(*frame));
    ++next_frame_;
}

void PngWriter::write_audio_packet(const std::shared_ptr<AVPacket>& /*packet*/) {
    throw Error(ErrorCode::runtime, "pictures hold no sound");
}

void PngWriter::write_audio_frame(const std::shared_ptr<AVFrame>& /*frame*/) {
    throw Error(ErrorCode::runtime, "pictures hold no sound");
}

void PngWriter::finish() {
    std::error_code error;
    fs::rename(temporary_, folder_, error);  // replaces an empty folder
    if (error) fail(folder_, error);
    finished_ = true;
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
