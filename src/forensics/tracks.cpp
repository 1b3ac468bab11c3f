// Curves from the files that a render leaves besides its video.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <map>
#include <numbers>

#include "core/file.h"
#include "forensics/report.h"
#include "newscaster/error.h"

namespace newscaster::forensics {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

json parse(const fs::path& file) {
    try {
        return json::parse(read_text(file));
    } catch (const json::exception& exception) {
        throw Error(ErrorCode::bad_input,
                    fmt::format("{}: found {}, wanted JSON", file.string(), exception.what()));
    }
}

[[noreturn]] void refuse(const fs::path& file, const std::string& found,
                         const std::string& wanted) {
    throw Error(ErrorCode::bad_input,
                fmt::format("{}: found {}, wanted {}", file.string(), found, wanted));
}

void check_frames(const fs::path& file, size_t found, int64_t wanted) {
    if (static_cast<int64_t>(found) == wanted) return;
    refuse(file, fmt::format("{} frames", found), fmt::format("{} as in the videos", wanted));
}

void read_cadence(const fs::path& file, int64_t count, Tracks& tracks) {
    const json plan = parse(file);
    if (!plan.is_object() || plan.value("format", "") != "newscaster-cadence") {
        refuse(file, "another file", "a plan of render --cadence-plan");
    }
    const json& frames = plan.at("frames");
    check_frames(file, frames.size(), count);
    Curve lips{"lips, opening", {}};
    Curve eyes{"eyes, opening", {}};
    for (const json& frame : frames) {
        tracks.keyframes.push_back(frame.at("neural").get<bool>());
        lips.values.emplace_back(frame.at("lip_opening").get<double>());
        eyes.values.emplace_back(frame.at("eye_opening").get<double>());
    }
    tracks.plots.push_back({"Plan: openings and keyframes",
                            "crop",
                            {std::move(lips), std::move(eyes)},
                            tracks.keyframes,
                            "keyframe"});
}

// The norm of the third difference of the angles, rad/s^3.
Curve jerk_of(const json& frames, const std::array<size_t, 3>& angles, double fps) {
    Curve jerk{"jerk of the head", {}};
    for (size_t i = 0; i < frames.size(); ++i) {
        if (i < 3) {
            jerk.values.emplace_back();
            continue;
        }
        double sum = 0.0;
        for (const size_t angle : angles) {
            const auto at = [&](size_t back) { return frames[i - back].at(angle).get<double>(); };
            const double third = at(0) - 3.0 * at(1) + 3.0 * at(2) - at(3);
            sum += third * third;
        }
        jerk.values.emplace_back(std::sqrt(sum) * std::numbers::pi / 180.0 * fps * fps * fps);
    }
    return jerk;
}

void read_motion(const fs::path& file, int64_t count, double fps, Tracks& tracks) {
    const json motion = parse(file);
    if (!motion.is_object() || !motion.contains("names") || !motion.contains("frames")) {
        refuse(file, "another file", "a .json of render --export-motion");
    }
    std::map<std::string, size_t> index;
    for (const json& name : motion.at("names"))
        index.emplace(name.get<std::string>(), index.size());
    const json& frames = motion.at("frames");
    check_frames(file, frames.size(), count);
    if (index.contains("jawOpen")) {
        Curve jaw{"jawOpen", {}};
        for (const json& frame : frames) {
            jaw.values.emplace_back(frame.at(index.at("jawOpen")).get<double>());
        }
        tracks.plots.push_back({"Mouth aperture", "", {std::move(jaw)}, {}, ""});
    }
    if (index.contains("pitch") && index.contains("yaw") && index.contains("roll")) {
        tracks.plots.push_back(
            {"Jerk of the head",
             "rad/s3",
             {jerk_of(frames, {index.at("pitch"), index.at("yaw"), index.at("roll")}, fps)},
             {},
             ""});
    }
}

}  // namespace

Tracks read_tracks(const fs::path& cadence_plan, const fs::path& motion, int64_t frames,
                   double fps) {
    Tracks tracks;
    try {
        if (!cadence_plan.empty()) read_cadence(cadence_plan, frames, tracks);
        if (!motion.empty()) read_motion(motion, frames, fps, tracks);
    } catch (const json::exception& exception) {
        refuse(cadence_plan.empty() ? motion : cadence_plan, exception.what(),
               "a file of newscaster render");
    }
    return tracks;
}

}  // namespace newscaster::forensics
