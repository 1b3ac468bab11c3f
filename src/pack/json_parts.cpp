#include "pack/json_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace newscaster::pack {

namespace {

constexpr size_t kSha256Digits = 64;

bool is_plain(const std::string& name) {
    return std::none_of(name.begin(), name.end(), [](char c) {
        const auto code = static_cast<unsigned char>(c);
        return code < 0x20 || code == 0x7f || c == '\\' || c == ':';
    });
}

}  // namespace

void check_format(const JsonReader& root, std::string_view format, int schema_version) {
    const JsonReader word = root.at("format");
    if (word.text() != format) word.fail(fmt::format("\"{}\"", format));
    const JsonReader version = root.at("schema_version");
    if (version.integer(0, INT64_MAX) != schema_version) {
        version.fail(fmt::format("{}, the schema version this build supports", schema_version));
    }
}

std::string parse_file_name(const JsonReader& reader) {
    std::string name = reader.text();
    const std::filesystem::path path(name);
    const bool inside = is_plain(name) && path.is_relative() &&
                        std::none_of(path.begin(), path.end(), [](const auto& part) {
                            return part.empty() || part == "." || part == "..";
                        });
    if (!inside) reader.fail("a relative file name inside the folder, without \"..\"");
    return name;
}

std::string parse_sha256(const JsonReader& reader) {
    std::string hash = reader.text();
    const bool hex = std::all_of(hash.begin(), hash.end(), [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
    });
    if (hash.size() != kSha256Digits || !hex) reader.fail("a SHA-256 of 64 lower-case hex digits");
    return hash;
}

GraphFile parse_file(const JsonReader& reader) {
    return {parse_file_name(reader.at("file")), parse_sha256(reader.at("sha256"))};
}

MaskSpec parse_mask(const JsonReader& reader, int64_t crop_size_px) {
    reader.expect_keys({"inset_px", "feather_px", "profile"});
    const double half = static_cast<double>(crop_size_px) / 2.0;
    MaskSpec mask;
    mask.inset_px = reader.at("inset_px").number(0.0, half);
    mask.feather_px = reader.at("feather_px").number(0.0, half);
    if (mask.inset_px + mask.feather_px > half) {
        reader.fail(fmt::format("inset_px + feather_px of at most {}, half of the crop", half));
    }
    if (reader.has("profile")) {
        const std::string profile = reader.at("profile").text();
        mask.linear = profile == "linear";
        if (!mask.linear && profile != "smoothstep") {
            reader.at("profile").fail("\"smoothstep\" or \"linear\"");
        }
    }
    return mask;
}

}  // namespace newscaster::pack
