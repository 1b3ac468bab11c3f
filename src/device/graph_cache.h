// Cache of compiled graphs on disk: opaque payloads under a description of what they depend on.
//
// One file per entry, <sha256 of the description>.graph: 8 bytes magic, u64 little-endian length
// of the metadata, metadata JSON {description, payload_bytes, payload_sha256}, payload. The same
// metadata lies beside it as .json for people. A file that is truncated, altered, or that describes
// something else is reported to the log and treated as absent; nothing here ever throws because of
// the cache, so a broken or read-only cache only costs time.
#pragma once

#include <cstddef>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/log.h"

namespace newscaster::device {

// Thread-safe; processes may share a folder (entries are written atomically).
class GraphCache {
  public:
    // folder: created when first written; empty = no cache.
    GraphCache(std::filesystem::path folder, Log log);

    [[nodiscard]] bool enabled() const { return !folder_.empty(); }
    [[nodiscard]] std::filesystem::path file_of(const nlohmann::json& description) const;

    // The payload stored for exactly this description.
    [[nodiscard]] std::optional<std::vector<std::byte>> find(
        const nlohmann::json& description) const;
    void store(const nlohmann::json& description, std::span<const std::byte> payload) const;

  private:
    std::filesystem::path folder_;
    Log log_;
};

}  // namespace newscaster::device
