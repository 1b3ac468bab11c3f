// Any bytes as a .safetensors file: tensors no larger than the input, or Error(bad_pack).
#include <cstdint>
#include <cstdlib>
#include <span>

#include "core/safetensors.h"
#include "newscaster/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    try {
        const auto tensors = newscaster::parse_safetensors(
            std::as_bytes(std::span<const uint8_t>(data, size)), "fuzz");
        size_t total = 0;
        for (const auto& [name, tensor] : tensors) {
            total += tensor.bytes();
            if (tensor.dtype() != newscaster::DType::boolean &&
                tensor.to_f32().size() != tensor.size()) {
                std::abort();
            }
        }
        if (total > size) std::abort();
    } catch (const newscaster::Error& error) {
        if (error.code() != newscaster::ErrorCode::bad_pack) std::abort();
    }
    return 0;
}
