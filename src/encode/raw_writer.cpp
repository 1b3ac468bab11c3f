#include "encode/raw_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "encode/frame_check.h"
#include "newscaster/error.h"

namespace newscaster::encode {

namespace {

constexpr std::string_view kFrameMark = "FRAME\n";

std::span<const uint8_t> bytes_of(std::string_view text) {
    return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

uint8_t* copy_rows(const uint8_t* source, int stride, int width, int rows, uint8_t* target) {
    for (int row = 0; row < rows; ++row, source += stride) {
        target = std::copy_n(source, width, target);
    }
    return target;
}

}  // namespace

RawWriter::RawWriter(const WriterOptions& options)
    : file_((check_size(options.video.width, options.video.height), options.output)),
      y4m_(options.container == Container::y4m),
      width_(options.video.width),
      height_(options.video.height) {
    const size_t picture = static_cast<size_t>(width_) * static_cast<size_t>(height_) / 2 * 3;
    buffer_.resize(picture + (y4m_ ? kFrameMark.size() : 0));
    if (!y4m_) return;
    file_.write(bytes_of(fmt::format(
        "YUV4MPEG2 W{} H{} F{}:{} Ip A1:1 C420jpeg XYSCSS=420JPEG XCOLORRANGE=LIMITED\n", width_,
        height_, options.video.fps.num, options.video.fps.den)));
}

void RawWriter::write_video(const VideoFramePtr& frame) {
    check_frame(*frame, next_frame_, width_, height_);
    ++next_frame_;
    if (y4m_) {
        pack_y4m(*frame);
    } else {
        pack_nv12(*frame);
    }
    file_.write(buffer_);
}

void RawWriter::pack_nv12(const VideoFrame& frame) {
    uint8_t* target = copy_rows(frame.y, frame.y_stride, width_, height_, buffer_.data());
    copy_rows(frame.uv, frame.uv_stride, width_, height_ / 2, target);
}

void RawWriter::pack_y4m(const VideoFrame& frame) {
    uint8_t* target = std::copy(kFrameMark.begin(), kFrameMark.end(), buffer_.data());
    target = copy_rows(frame.y, frame.y_stride, width_, height_, target);
    uint8_t* cb = target;
    uint8_t* cr = target + static_cast<ptrdiff_t>(width_ / 2) * (height_ / 2);
    for (int row = 0; row < height_ / 2; ++row) {
        const uint8_t* source = frame.uv + static_cast<ptrdiff_t>(row) * frame.uv_stride;
        for (int i = 0; i < width_ / 2; ++i) {
            *cb++ = source[2 * i];
            *cr++ = source[2 * i + 1];
        }
    }
}

void RawWriter::write_audio_packet(const std::shared_ptr<AVPacket>& /*packet*/) {
    throw Error(ErrorCode::runtime, "raw video holds no sound");
}

void RawWriter::write_audio_frame(const std::shared_ptr<AVFrame>& /*frame*/) {
    throw Error(ErrorCode::runtime, "raw video holds no sound");
}

void RawWriter::finish() {
    file_.commit();
}

}  // namespace newscaster::encode
