#include "encode/frame_check.h"

#include <fmt/format.h>

#include "newscaster/error.h"

namespace newscaster::encode {

void check_frame(const VideoFrame& frame, int64_t index, int width, int height) {
    if (frame.index != index) {
        throw Error(ErrorCode::runtime,
                    fmt::format("video frame {} came where {} is wanted", frame.index, index));
    }
    if (frame.width != width || frame.height != height) {
        throw Error(ErrorCode::runtime,
                    fmt::format("video frame {} has {}x{} pixels, {}x{} are wanted", frame.index,
                                frame.width, frame.height, width, height));
    }
}

void check_size(int width, int height) {
    if (width > 0 && height > 0 && width % 2 == 0 && height % 2 == 0) return;
    throw Error(
        ErrorCode::bad_input,
        fmt::format("video size {}x{}, even and positive numbers are wanted", width, height));
}

}  // namespace newscaster::encode
