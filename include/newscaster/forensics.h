// Videos against a reference, frame by frame: how much they differ and where, as numbers and as a
// report to look at.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "newscaster/error.h"
#include "newscaster/export.h"
#include "newscaster/types.h"

namespace newscaster {

// Pixels [x0, x1) x [y0, y1) of the canvas.
struct CanvasBox {
    int x0 = 0;
    int y0 = 0;
    int x1 = 0;
    int y1 = 0;
};

// Parts of the canvas that are measured by themselves; absent ones are left out.
struct ForensicsRegions {
    std::optional<CanvasBox> face;  // what is drawn anew; its border is searched for a seam
    std::optional<CanvasBox> mouth;
    std::optional<CanvasBox> eyes;
    std::string origin;  // where they come from, for the report
};

struct ForensicsJob {
    std::filesystem::path reference;
    std::vector<std::filesystem::path> tests;  // at least one
    std::vector<std::string> names;            // of the tests; empty: s2, s3, ...
    std::filesystem::path output;              // folder that is made
    bool replace = false;                      // a report that is there already
    ForensicsRegions regions;
    std::vector<int64_t> frames;         // pictures of these, besides the worst
    int worst = 3;                       // how many of the worst frames to show
    std::filesystem::path cadence_plan;  // .json of render --cadence-plan; empty = none
    std::filesystem::path motion;        // .json of render --export-motion; empty = none
    int threads = 0;                     // 0 = all cores
    LogSink log;
};

struct ForensicsReport {
    int64_t frames = 0;
    std::string summary_json;  // docs/forensics.md describes it
    std::filesystem::path page;
};

// Where an avatar's face, mouth and eyes are on its canvas (first source frame). Throws
// Error(bad_pack).
[[nodiscard]] NEWSCASTER_EXPORT ForensicsRegions
regions_of_avatar(const std::filesystem::path& avatar, const std::filesystem::path& pack);

// The same found in the first frame of a video that shows a face; no face box (there is no way to
// see what was drawn). Empty regions when no frame of the first second does. detectors: folder of
// scripts/fetch_detectors.sh. Throws Error(bad_pack) when the detectors are not there.
[[nodiscard]] NEWSCASTER_EXPORT ForensicsRegions
find_regions(const std::filesystem::path& video, const std::filesystem::path& detectors);

// Compares every test with the reference. `progress` (frames done) is called from this thread;
// false cancels (Error(cancelled)). Throws Error(bad_input) for videos of another size, frame rate
// or length, regions outside the canvas, frames that are not there. The output folder appears
// complete or not at all.
NEWSCASTER_EXPORT ForensicsReport compare_videos(const ForensicsJob& job,
                                                 const std::function<bool(int64_t)>& progress);

}  // namespace newscaster
