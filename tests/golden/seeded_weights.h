// The weights of seeded Ditto packs, worked out as training/ditto/seeded.py does, so that tests
// need neither PyTorch nor 50 MB of files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace newscaster::test {

// Philox 4x64-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011) with
// NumPy's counter: the first block is block 1. `count` values of the raw stream, low word first.
[[nodiscard]] std::vector<uint32_t> philox_words(uint64_t key0, uint64_t key1, size_t count);

// `count` values in [-1, 1): the key is the start of SHA-256("<seed>/<name>"), a value the high 24
// bits of a word.
[[nodiscard]] std::vector<float> seeded_uniform(uint64_t seed, const std::string& name,
                                                size_t count);

// Inputs of golden tests (docs/parity.md): element i, counted from 1, is
// low + (high - low) * (((i * 2654435769 + crc32(name)) mod 2^32) >> 8) / 2^24 in double, rounded.
[[nodiscard]] std::vector<float> formula_input(const std::string& name, size_t count, double low,
                                               double high);

// Copies a skeleton pack (newscaster-tools skeleton-ditto) to `target` and writes its weights
// there. Throws Error when a file is missing or weights.json does not have the form the tool
// writes.
void fill_skeleton(const std::filesystem::path& skeleton, const std::filesystem::path& target);

}  // namespace newscaster::test
