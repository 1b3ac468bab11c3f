// Any bytes as a picture: whole and within the limits, or refused with Error(bad_input). libav
// itself is not instrumented; what is ours around it is.
#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "media/image.h"
#include "memory_file.h"
#include "newscaster/error.h"

namespace {

constexpr size_t kMaxBytes = 64U << 10U;
// What one input may cost.
constexpr newscaster::media::PictureLimits kLimits{.side_px = 2048, .pixels = 1 << 18};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size > kMaxBytes) return 0;
    const newscaster::fuzz::MemoryFile file({data, size});
    try {
        const auto image = newscaster::media::read_image(file.path(), kLimits);
        const int64_t pixels = int64_t{image.width} * image.height;
        if (image.width <= 0 || image.height <= 0 || pixels > kLimits.pixels ||
            std::max(image.width, image.height) > kLimits.side_px ||
            image.pixels.size() != static_cast<size_t>(pixels) * 3) {
            std::abort();
        }
    } catch (const newscaster::Error& error) {
        if (error.code() != newscaster::ErrorCode::bad_input) std::abort();
    }
    return 0;
}
