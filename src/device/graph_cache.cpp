#include "device/graph_cache.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/file.h"
#include "newscaster/error.h"

namespace newscaster::device {

namespace {

constexpr std::string_view kMagic = "NCGRAPH1";
constexpr size_t kHeaderBytes = kMagic.size() + sizeof(uint64_t);

static_assert(std::endian::native == std::endian::little, "the length is stored little-endian");

// Why a file is not a sound entry for `description`; empty text = sound, `payload` is set.
std::string check(std::span<const std::byte> file, const nlohmann::json& description,
                  std::span<const std::byte>& payload) {
    if (file.size() < kHeaderBytes || std::memcmp(file.data(), kMagic.data(), kMagic.size()) != 0) {
        return "not a compiled graph file";
    }
    uint64_t metadata_bytes = 0;
    std::memcpy(&metadata_bytes, file.data() + kMagic.size(), sizeof(metadata_bytes));
    if (metadata_bytes > file.size() - kHeaderBytes) return "truncated";
    const auto text = file.subspan(kHeaderBytes, metadata_bytes);
    const auto* first = reinterpret_cast<const char*>(text.data());
    const auto metadata = nlohmann::json::parse(first, first + text.size(), nullptr, false);
    if (!metadata.is_object() || !metadata.contains("description")) return "unreadable metadata";
    if (metadata["description"] != description) return "made for something else";
    payload = file.subspan(kHeaderBytes + metadata_bytes);
    if (metadata.value("payload_bytes", nlohmann::json()) != payload.size()) return "truncated";
    if (metadata.value("payload_sha256", nlohmann::json()) != sha256_hex(payload)) {
        return "payload does not match its sha256";
    }
    return {};
}

}  // namespace

GraphCache::GraphCache(std::filesystem::path folder, Log log)
    : folder_(std::move(folder)), log_(std::move(log)) {}

std::filesystem::path GraphCache::file_of(const nlohmann::json& description) const {
    return folder_ / (sha256_hex(description.dump()) + ".graph");
}

std::optional<std::vector<std::byte>> GraphCache::find(const nlohmann::json& description) const {
    if (!enabled()) return std::nullopt;
    const auto file = file_of(description);
    std::error_code missing;
    if (!std::filesystem::exists(file, missing)) return std::nullopt;
    try {
        auto bytes = read_file(file);
        std::span<const std::byte> payload;
        const std::string fault = check(bytes, description, payload);
        if (fault.empty()) {
            bytes.erase(bytes.begin(), bytes.end() - static_cast<std::ptrdiff_t>(payload.size()));
            return bytes;
        }
        log_(LogLevel::warning, "compiled graph {}: {}; compiling again", file.string(), fault);
    } catch (const std::exception& e) {
        log_(LogLevel::warning, "compiled graph cache: {}; compiling again", e.what());
    }
    return std::nullopt;
}

void GraphCache::store(const nlohmann::json& description,
                       std::span<const std::byte> payload) const {
    if (!enabled()) return;
    try {
        const nlohmann::json metadata = {{"description", description},
                                         {"payload_bytes", payload.size()},
                                         {"payload_sha256", sha256_hex(payload)}};
        const std::string text = metadata.dump();
        const uint64_t metadata_bytes = text.size();
        std::vector<std::byte> bytes(kHeaderBytes + text.size() + payload.size());
        std::memcpy(bytes.data(), kMagic.data(), kMagic.size());
        std::memcpy(bytes.data() + kMagic.size(), &metadata_bytes, sizeof(metadata_bytes));
        std::memcpy(bytes.data() + kHeaderBytes, text.data(), text.size());
        std::ranges::copy(payload,
                          bytes.begin() + static_cast<std::ptrdiff_t>(kHeaderBytes + text.size()));
        auto file = file_of(description);
        write_file_atomic(file, bytes);
        write_text_atomic(file.replace_extension(".json"), metadata.dump(2) + "\n");
    } catch (const std::exception& e) {
        log_(LogLevel::warning, "compiled graph cache: {}; going on without", e.what());
    }
}

}  // namespace newscaster::device
