// Whether lips and sound belong together: the offset of the picture, and whether the lips meet
// where p, b and m are heard. docs/sync.md has the method and what it measures on known material.
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

struct SyncJob {
    std::filesystem::path audio;  // anything with sound, videos included; "-" is standard input
    // A video, or the motion of a render (.json or .csv of --export-motion).
    std::filesystem::path picture;
    std::filesystem::path pack;  // its audio encoder must tell phones (`audio.phones`)
    // Avatar in the video, made for the pack: where its mouth is. Empty: the face is looked for.
    std::filesystem::path avatar;
    std::filesystem::path
        detectors;  // folder of scripts/fetch_detectors.sh; for videos of no avatar
    std::filesystem::path
        output;              // JSON of the report, written complete or not at all; empty = none
    int search_frames = 15;  // offsets that are tried, either way, 1 .. 250
    int threads = 0;         // 0 = all cores
    LogSink log;
};

struct SyncReport {
    std::string mouth;   // what was followed: "motion", "avatar" (its mouth box), "landmarks"
    int64_t frames = 0;  // with both sound and picture, at the pack's frame rate
    double fps = 0.0;    // of the picture
    // Frames of the picture, and milliseconds, by which it comes after the sound (negative:
    // before). None when there is no clear peak: a still mouth, silence, or another text.
    std::optional<double> offset_frames;
    std::optional<double> offset_ms;
    double correlation = 0.0;  // of the mouth with what the sound asks for, at its best shift
    double rival = 0.0;        // the largest one elsewhere
    // By shift from -search_frames on, in frames of the pack's rate; none: one of them is still.
    std::vector<std::optional<double>> correlations;

    int64_t closures = 0;      // p, b, m heard
    int64_t closures_met = 0;  // of these, with the lips closed within a frame
    int64_t closed_runs = 0;   // times the lips close inside speech
    int64_t closed_right = 0;  // of these, at p, b or m
    double chance = 0.0;       // recall that closing at random as often would have
    // closures_met / closures and closed_right / closed_runs; none where there is nothing to count.
    std::optional<double> recall;
    std::optional<double> precision;

    std::string json;  // all of it; docs/sync.md
};

// Whether a picture is taken for motion, by its name: .json, .csv, and .npz, which is refused.
[[nodiscard]] NEWSCASTER_EXPORT bool is_motion_file(const std::filesystem::path& picture);

// `progress` (frames of a video read so far) is called from this thread; false cancels
// (Error(cancelled)). Throws Error: bad_input (no sound, no video, damaged, no face in a fifth of
// the frames, too short for the search, a motion file without lips), bad_pack (a pack that tells no
// phones, avatar or detectors missing), io, device_unavailable.
[[nodiscard]] NEWSCASTER_EXPORT SyncReport
measure_sync(const SyncJob& job, const std::function<bool(int64_t)>& progress);

}  // namespace newscaster
