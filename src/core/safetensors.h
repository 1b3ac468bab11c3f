// The safetensors container: little-endian u64 header length, JSON header, raw tensors.
// Format: https://github.com/huggingface/safetensors#format
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>

#include "core/tensor.h"

namespace newscaster {

using TensorMap = std::map<std::string, Tensor, std::less<>>;

// Strict: offsets must be in range, aligned with dtype and shape, without overlap or gap.
// Throws Error(bad_pack) naming `origin` and the fault. Memory is bounded by the input's size.
[[nodiscard]] TensorMap parse_safetensors(std::span<const std::byte> bytes,
                                          const std::string& origin);
[[nodiscard]] TensorMap read_safetensors(const std::filesystem::path& file);

// Writes atomically (beside the file, then rename). Throws Error(io).
void write_safetensors(const std::filesystem::path& file, const TensorMap& tensors);

}  // namespace newscaster
