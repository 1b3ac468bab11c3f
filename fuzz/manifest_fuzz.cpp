// Any bytes as pack.json: accepted with its promises kept, or refused with Error(bad_pack).
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "newscaster/error.h"
#include "pack/manifest.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using newscaster::pack::Manifest;
    try {
        const Manifest manifest =
            newscaster::pack::parse_manifest({reinterpret_cast<const char*>(data), size}, "fuzz");
        int64_t dims = 0;
        for (const auto& span : manifest.motion.layout) dims += span.size;
        if (dims != manifest.motion.dims) std::abort();
        if (manifest.audio.window_samples() <= 0) std::abort();
        if (newscaster::pack::avatar_key(manifest).size() != 64) std::abort();
    } catch (const newscaster::Error& error) {
        if (error.code() != newscaster::ErrorCode::bad_pack) std::abort();
    }
    return 0;
}
