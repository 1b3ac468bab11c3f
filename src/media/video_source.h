// Reading video: any container libav reads -> 8-bit 4:2:0 pictures, one by one.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/stage_types.h"
#include "newscaster/types.h"

namespace newscaster::media {

// How luma and chroma of a video make colours.
struct ColourCoding {
    double kr = 0.2126;  // BT.709: weights of red and blue in luma
    double kb = 0.0722;
    bool full_range = false;
};

struct VideoFormat {
    int width = 0;
    int height = 0;
    Rational fps;
    std::string codec;
    ColourCoding colours;
};

// Planes without gaps between rows; chroma covers pairs of pixels, rounded up.
struct VideoPicture {
    int64_t index = 0;
    int width = 0;
    int height = 0;
    ColourCoding colours;
    std::vector<uint8_t> y;  // height * width
    std::vector<uint8_t> u;  // ((height + 1) / 2) * ((width + 1) / 2)
    std::vector<uint8_t> v;

    [[nodiscard]] int chroma_width() const { return (width + 1) / 2; }
};

// One pass over one file with constant memory. Not thread-safe.
class VideoSource {
  public:
    // The content decides the format, not the name; an attached picture is no video. Throws
    // Error(io): unreadable; Error(bad_input): not a video file, no video stream, a codec that
    // libav does not know, sides beyond 16384.
    static std::unique_ptr<VideoSource> open(const std::string& path);
    virtual ~VideoSource() = default;

    [[nodiscard]] virtual const VideoFormat& format() const = 0;

    // Next picture in order of display; nullopt at the end. Throws Error(bad_input) where data is
    // damaged or the size changes, Error(io) on read errors.
    virtual std::optional<VideoPicture> read() = 0;
};

// A part of a picture in RGB; chroma is that of the pair of pixels. box lies inside the picture.
[[nodiscard]] RgbImage to_rgb(const VideoPicture& picture, const Box& box);

}  // namespace newscaster::media
