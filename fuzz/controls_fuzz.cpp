// Any bytes as controls.json: accepted with every range the right way round, or refused with
// Error(bad_input).
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "newscaster/controls.h"
#include "newscaster/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    try {
        const auto controls =
            newscaster::parse_controls({reinterpret_cast<const char*>(data), size}, "fuzz");
        for (const auto& range : controls.frames) {
            if (range.first < 0 || range.last < range.first) std::abort();
        }
    } catch (const newscaster::Error& error) {
        if (error.code() != newscaster::ErrorCode::bad_input) std::abort();
    }
    return 0;
}
