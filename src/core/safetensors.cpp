#include "core/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "core/file.h"
#include "newscaster/error.h"

namespace newscaster {

namespace {

static_assert(std::endian::native == std::endian::little, "safetensors is little-endian");

constexpr size_t kPrefixBytes = 8;
constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // the format's own limit

constexpr std::array<std::pair<std::string_view, DType>, 9> kNames{{{"F32", DType::f32},
                                                                    {"F16", DType::f16},
                                                                    {"BF16", DType::bf16},
                                                                    {"F64", DType::f64},
                                                                    {"U8", DType::u8},
                                                                    {"I8", DType::i8},
                                                                    {"I32", DType::i32},
                                                                    {"I64", DType::i64},
                                                                    {"BOOL", DType::boolean}}};

struct Entry {
    std::string name;
    DType dtype = DType::f32;
    Shape shape;
    uint64_t begin = 0;
    uint64_t end = 0;
};

[[noreturn]] void fail(const std::string& origin, const std::string& what) {
    throw Error(ErrorCode::bad_pack,
                fmt::format("{}: not a valid safetensors file: {}", origin, what));
}

Entry parse_entry(const std::string& name, const nlohmann::json& item, const std::string& origin) {
    Entry entry;
    entry.name = name;
    try {
        const auto type = item.at("dtype").get<std::string>();
        const auto* found = std::find_if(kNames.begin(), kNames.end(),
                                         [&](const auto& row) { return row.first == type; });
        if (found == kNames.end()) fail(origin, fmt::format("{}: dtype {} unknown", name, type));
        entry.dtype = found->second;
        for (const auto& extent : item.at("shape")) {
            if (!extent.is_number_unsigned()) fail(origin, name + ": shape is not a list of sizes");
            entry.shape.push_back(extent.get<int64_t>());
        }
        const auto& offsets = item.at("data_offsets");
        if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
            !offsets[1].is_number_unsigned()) {
            fail(origin, name + ": data_offsets is not a pair of positions");
        }
        entry.begin = offsets[0].get<uint64_t>();
        entry.end = offsets[1].get<uint64_t>();
        const auto wanted =
            static_cast<uint64_t>(element_count(entry.shape)) * size_of(entry.dtype);
        if (entry.end < entry.begin || entry.end - entry.begin != wanted) {
            fail(origin, fmt::format("{}: {} bytes stored for shape {}, wanted {}", name,
                                     entry.end - entry.begin, to_string(entry.shape), wanted));
        }
    } catch (const nlohmann::json::exception&) {
        fail(origin, name + ": dtype, shape or data_offsets missing");
    } catch (const Error& error) {
        if (error.code() == ErrorCode::bad_pack) throw;
        fail(origin, fmt::format("{}: {}", name, error.what()));
    }
    return entry;
}

std::vector<Entry> parse_header(std::string_view text, const std::string& origin) {
    nlohmann::json header;
    try {
        header = nlohmann::json::parse(text);
    } catch (const nlohmann::json::exception&) {
        fail(origin, "the header is not JSON");
    }
    if (!header.is_object()) fail(origin, "the header is not a JSON object");
    std::vector<Entry> entries;
    for (const auto& item : header.items()) {
        if (item.key() != "__metadata__") {
            entries.push_back(parse_entry(item.key(), item.value(), origin));
        }
    }
    std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
        return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
    });
    return entries;
}

}  // namespace

TensorMap parse_safetensors(std::span<const std::byte> bytes, const std::string& origin) {
    uint64_t header_bytes = 0;
    if (bytes.size() < kPrefixBytes) fail(origin, "shorter than 8 bytes");
    std::memcpy(&header_bytes, bytes.data(), kPrefixBytes);
    if (header_bytes > kMaxHeaderBytes || header_bytes > bytes.size() - kPrefixBytes) {
        fail(origin, fmt::format("header of {} bytes in a file of {}", header_bytes, bytes.size()));
    }
    const auto* text = reinterpret_cast<const char*>(bytes.data()) + kPrefixBytes;
    const auto entries = parse_header({text, static_cast<size_t>(header_bytes)}, origin);
    const auto body = bytes.subspan(kPrefixBytes + static_cast<size_t>(header_bytes));

    // First the whole layout, then the copies: a bad file costs no memory.
    uint64_t position = 0;
    for (const auto& entry : entries) {
        if (entry.begin != position) fail(origin, entry.name + ": gap or overlap before it");
        position = entry.end;
    }
    if (position != body.size()) {
        fail(origin,
             fmt::format("{} bytes of tensors, the header wants {}", body.size(), position));
    }
    TensorMap tensors;
    for (const auto& entry : entries) {
        Tensor tensor(entry.dtype, entry.shape);
        if (!tensor.empty()) std::memcpy(tensor.data(), body.data() + entry.begin, tensor.bytes());
        tensors.emplace(entry.name, std::move(tensor));
    }
    return tensors;
}

TensorMap read_safetensors(const std::filesystem::path& file) {
    return parse_safetensors(read_file(file), file.string());
}

void write_safetensors(const std::filesystem::path& file, const TensorMap& tensors) {
    auto header = nlohmann::json::object();
    uint64_t position = 0;
    for (const auto& [name, tensor] : tensors) {
        const auto* row = std::find_if(
            kNames.begin(), kNames.end(),
            [dtype = tensor.dtype()](const auto& candidate) { return candidate.second == dtype; });
        header[name] = {{"dtype", row->first},
                        {"shape", tensor.shape()},
                        {"data_offsets", {position, position + tensor.bytes()}}};
        position += tensor.bytes();
    }
    std::string text = header.dump();
    text.resize((text.size() + kPrefixBytes - 1) / kPrefixBytes * kPrefixBytes, ' ');
    std::vector<std::byte> bytes(kPrefixBytes + text.size() + position);
    const uint64_t header_bytes = text.size();
    std::memcpy(bytes.data(), &header_bytes, kPrefixBytes);
    std::memcpy(bytes.data() + kPrefixBytes, text.data(), text.size());
    size_t cursor = kPrefixBytes + text.size();
    for (const auto& [name, tensor] : tensors) {
        if (!tensor.empty()) std::memcpy(bytes.data() + cursor, tensor.data(), tensor.bytes());
        cursor += tensor.bytes();
    }
    write_file_atomic(file, bytes);
}

}  // namespace newscaster
