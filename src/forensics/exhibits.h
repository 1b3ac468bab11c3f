// Pictures of single frames for a report.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "forensics/measurements.h"
#include "forensics/report.h"

namespace newscaster::forensics {

// Decodes the videos once more and writes frame_000017_face.png and frame_000017_mouth.png into
// `folder` for every frame of the list, in order of time. Without a face box the whole canvas is
// shown, reduced.
[[nodiscard]] std::vector<Exhibit> write_exhibits(const std::filesystem::path& folder,
                                                  const std::string& reference,
                                                  const std::vector<std::string>& tests,
                                                  const Regions& regions,
                                                  const std::vector<int64_t>& frames);

}  // namespace newscaster::forensics
