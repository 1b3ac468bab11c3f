// avatar.json, schema version 1, as C++ values; no other file is touched.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/stage_types.h"
#include "pack/manifest.h"

namespace newscaster::avatar {

inline constexpr int kAvatarSchemaVersion = 1;
inline constexpr std::string_view kDocumentFile = "avatar.json";

struct AvatarDocument {
    std::string name;
    std::string title;
    std::string license;
    std::string pack_name;
    std::string avatar_key;  // of the pack it was made for
    int width = 0;           // canvas, even
    int height = 0;
    std::vector<std::string> canvas_files;  // one, or one per source frame
    bool nv12 = false;  // the one canvas file holds every source frame as NV12, else pictures
    std::vector<Affine> crop_to_canvas;  // per source frame, invertible
    // Per source frame, or empty: which entry of the cached features draws it (each its own)...
    std::vector<int64_t> features_of;
    std::vector<double> opacity;  // ... and how much of the drawn crop is seen, 0..1 (all of it)
    std::optional<pack::MaskSpec> mask;  // absent: the pack's
    pack::GraphFile tensors;
};

// Strict, like pack::parse_manifest. Throws Error(bad_pack) naming origin, path, found and wanted.
[[nodiscard]] AvatarDocument parse_avatar_document(std::string_view json_text,
                                                   const std::string& origin);

// The inverse: avatar.json of a document; equal documents give equal bytes.
[[nodiscard]] std::string avatar_document_text(const AvatarDocument& document);

}  // namespace newscaster::avatar
