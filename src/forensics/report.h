// What was measured as JSON and as one page that needs nothing else.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "forensics/measurements.h"
#include "forensics/plot.h"

namespace newscaster::forensics {

// Curves that other files brought along: the plan of keyframes, lips, jerk.
struct Tracks {
    std::vector<Plot> plots;
    std::vector<bool> keyframes;  // per frame; empty: not known
};

// Reads render --cadence-plan and --export-motion files (.json); empty names are left out. Throws
// Error(io), Error(bad_input) for other files and other numbers of frames.
[[nodiscard]] Tracks read_tracks(const std::filesystem::path& cadence_plan,
                                 const std::filesystem::path& motion, int64_t frames, double fps);

// {"reference": .., "frames": .., "regions": {..}, "summary": {"canvas_psnr_s2": ..}, "tests":
// [{.., "per_frame": {..}}]}; docs/forensics.md.
[[nodiscard]] nlohmann::json to_json(const Measured& measured, const std::string& reference,
                                     const Regions& regions, const std::string& origin);

struct Exhibit {
    int64_t frame = 0;
    bool chosen = false;                    // by the user, not because it is among the worst
    std::filesystem::path face{}, mouth{};  // PNG files; empty = none
};

[[nodiscard]] std::string to_html(const Measured& measured, const nlohmann::json& report,
                                  const Tracks& tracks, const std::vector<Exhibit>& exhibits);

}  // namespace newscaster::forensics
