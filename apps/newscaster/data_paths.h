// Finds packs and avatars by name or path.
#pragma once

#include <filesystem>
#include <string>

namespace newscaster::cli {

// `wanted` is a folder, or the name of a bundled pack/avatar. Names are looked up in
// $NEWSCASTER_DATA, ./<kind>, and next to or above the program (build tree, share/newscaster).
// kind: "packs" or "avatars". Throws Error(bad_pack) listing the names that exist.
[[nodiscard]] std::filesystem::path find_data(const std::string& kind, const std::string& wanted);

// The folder "detectors" with the networks that find faces, looked up in the same places. Throws
// Error(bad_pack) saying how to get them.
[[nodiscard]] std::filesystem::path find_detectors();

// The bundled recording of speech, in the same places. Throws Error(io).
[[nodiscard]] std::filesystem::path find_speech();

}  // namespace newscaster::cli
