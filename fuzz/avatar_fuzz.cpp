// Any bytes as avatar.json: accepted with its promises kept, or refused with Error(bad_pack).
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "avatar/avatar_document.h"
#include "newscaster/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    try {
        const auto document = newscaster::avatar::parse_avatar_document(
            {reinterpret_cast<const char*>(data), size}, "fuzz");
        const bool even = document.width % 2 == 0 && document.height % 2 == 0;
        const size_t files = document.canvas_files.size();
        if (!even || (files != 1 && files != document.crop_to_canvas.size())) std::abort();
    } catch (const newscaster::Error& error) {
        if (error.code() != newscaster::ErrorCode::bad_pack) std::abort();
    }
    return 0;
}
