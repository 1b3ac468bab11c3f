// Owners of libav's objects and the few helpers that every user of libav here needs. Private to
// the rooms that speak libav (media, encode).
#pragma once

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/frame.h>
#include <libswscale/swscale.h>
}

#include <memory>
#include <string>

#include "newscaster/types.h"

namespace newscaster::media {

struct AvDeleter {
    void operator()(AVFrame* p) const { av_frame_free(&p); }
    void operator()(AVPacket* p) const { av_packet_free(&p); }
    void operator()(AVCodecContext* p) const { avcodec_free_context(&p); }
    void operator()(SwsContext* p) const { sws_freeContext(p); }
    void operator()(AVIOContext* p) const { avio_close(p); }
};

// Formats opened for reading are closed, those for writing are freed: two types.
struct InputFormatDeleter {
    void operator()(AVFormatContext* p) const { avformat_close_input(&p); }
};
struct OutputFormatDeleter {
    void operator()(AVFormatContext* p) const { avformat_free_context(p); }
};

using AvFramePtr = std::unique_ptr<AVFrame, AvDeleter>;
using AvPacketPtr = std::unique_ptr<AVPacket, AvDeleter>;
using AvCodecPtr = std::unique_ptr<AVCodecContext, AvDeleter>;
using AvIoPtr = std::unique_ptr<AVIOContext, AvDeleter>;
using SwsPtr = std::unique_ptr<SwsContext, AvDeleter>;
using InputFormatPtr = std::unique_ptr<AVFormatContext, InputFormatDeleter>;
using OutputFormatPtr = std::unique_ptr<AVFormatContext, OutputFormatDeleter>;

// New empty objects; throw std::bad_alloc.
[[nodiscard]] AvFramePtr make_frame();
[[nodiscard]] AvPacketPtr make_packet();

// New references to the same data, shared; throw std::bad_alloc.
[[nodiscard]] std::shared_ptr<AVFrame> share(const AVFrame& frame);
[[nodiscard]] std::shared_ptr<AVPacket> share(const AVPacket& packet);

// libav's text for a negative return value, e.g. "No such file or directory".
[[nodiscard]] std::string av_reason(int error);

// Makes libav silent for this process. Thread-safe; called by everything here that opens libav.
void silence_libav();

// libav address of a local path. The scheme in front keeps libav from taking a file name such as
// "concat:a" or "http:b" for a protocol.
[[nodiscard]] std::string file_url(const std::string& path);

[[nodiscard]] inline AVRational to_av(Rational value) {
    return {static_cast<int>(value.num), static_cast<int>(value.den)};
}
[[nodiscard]] inline Rational from_av(AVRational value) {
    return {value.num, value.den};
}

}  // namespace newscaster::media
