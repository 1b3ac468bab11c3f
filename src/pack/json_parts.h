// Pieces that pack.json and avatar.json share. Each throws Error of the reader's code, naming the
// document, the path, the value found and the value wanted.
#pragma once

#include <string>

#include "core/json_reader.h"
#include "pack/manifest.h"

namespace newscaster::pack {

// Checks "format" and "schema_version" before anything else is looked at: a document of another
// version has other keys, and one clear line about it beats a list of unknown keys.
void check_format(const JsonReader& root, std::string_view format, int schema_version);

// Relative, inside the folder: no "..", no absolute path, no backslash or colon, no control
// characters.
[[nodiscard]] std::string parse_file_name(const JsonReader& reader);

// 64 lower-case hex digits.
[[nodiscard]] std::string parse_sha256(const JsonReader& reader);

// {"file": ..., "sha256": ...}; other keys of the object are left to the caller.
[[nodiscard]] GraphFile parse_file(const JsonReader& reader);

// inset_px + feather_px at most half of the crop.
[[nodiscard]] MaskSpec parse_mask(const JsonReader& reader, int64_t crop_size_px);

}  // namespace newscaster::pack
