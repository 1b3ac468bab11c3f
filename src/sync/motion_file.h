// The mouth of a motion export (docs/motion.md, "Motion curves for other renderers").
#pragma once

#include <filesystem>

#include "sync/mouth_track.h"

namespace newscaster::sync {

// By extension: .json or .csv; .npz, too, which is not read.
[[nodiscard]] bool is_motion_file(const std::filesystem::path& file);

// Opening of the lips from ARKit's curves: max(0, jawOpen - mouthClose) and 0.3 of what the lower
// and the upper lip are drawn apart by. Throws Error(io), Error(bad_input) for a damaged file, one
// without these curves, without frames, or .npz. A .csv has no frame rate of its own: `csv_fps`
// counts.
[[nodiscard]] MouthTrack read_motion_file(const std::filesystem::path& file, double csv_fps);

}  // namespace newscaster::sync
