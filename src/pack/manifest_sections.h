// Parsers of the larger sections of pack.json; private to the room.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "core/json_reader.h"
#include "pack/manifest.h"

namespace newscaster::pack {

// Sizes are bounded so that sums and products of a few of them never overflow.
inline constexpr int64_t kMaxExtent = int64_t{1} << 20U;

// Text that must be one of a table's names; returns its value.
template <typename T, size_t N>
T one_of(const JsonReader& reader, const std::array<std::pair<std::string_view, T>, N>& table) {
    const std::string text = reader.text();
    std::array<std::string_view, N> names;
    for (size_t i = 0; i < N; ++i) {
        if (table[i].first == text) return table[i].second;
        names[i] = table[i].first;
    }
    reader.fail(fmt::format("one of: {}", fmt::join(names, ", ")));
}

// Array of non-empty strings, each of them once.
[[nodiscard]] std::vector<std::string> unique_texts(const JsonReader& reader);

// Needs audio (feature width) parsed before.
[[nodiscard]] MotionSpec parse_motion(const JsonReader& reader, const AudioSpec& audio);

// motion.composition; needs motion.layout and keypoints of `manifest`.
[[nodiscard]] CompositionSpec parse_composition(const JsonReader& reader, const Manifest& manifest);

// Needs every other section of `manifest` parsed before.
void parse_graphs(const JsonReader& reader, Manifest& manifest);

}  // namespace newscaster::pack
