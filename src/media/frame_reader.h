// Decoding one video stream of an opened container, within limits. Private to this room.
#pragma once

#include <string>

#include "media/av_ptr.h"
#include "media/image.h"
#include "media/input.h"

namespace newscaster::media {

// Throws Error(bad_input): this file cannot be decoded, and why.
[[noreturn]] void fail_to_decode(const std::string& name, const std::string& reason);

// What the decoder may take memory for, and the size of a picture for which it got none.
struct SizeCheck {
    PictureLimits limits;
    int refused_width = 0;
    int refused_height = 0;
};

// Decodes the best video stream frame by frame.
class FrameReader {
  public:
    // The input must outlive this object. Throws Error(bad_input): no picture in it, a codec that
    // libav does not know.
    FrameReader(Input& input, std::string name, const PictureLimits& limits);
    FrameReader(const FrameReader&) = delete;
    FrameReader& operator=(const FrameReader&) = delete;
    ~FrameReader() = default;

    // nullptr after the last. Throws Error(bad_input): damaged, or beyond the limits.
    [[nodiscard]] AvFramePtr next();

    [[nodiscard]] AVCodecID codec() const { return decoder_->codec_id; }
    [[nodiscard]] AVStream& stream() const { return *input_.format->streams[index_]; }

  private:
    void feed();
    [[noreturn]] void refuse(int result) const;

    Input& input_;
    std::string name_;
    int index_ = -1;
    SizeCheck check_;
    AvCodecPtr decoder_;
    AvPacketPtr packet_ = make_packet();
};

}  // namespace newscaster::media
