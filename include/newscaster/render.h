// Offline rendering: an audio file and an avatar in, a video file out. A client of the session API.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "newscaster/engine.h"

namespace newscaster {

struct RenderJob {
    std::string audio;         // any file libav reads, or "-" for standard input
    std::string output;        // file (png: folder), or "-" for standard output
    std::string format;        // "mp4", "mkv", "nv12", "y4m", "png"; empty = from the file name
    double max_audio_s = 0.0;  // only the first seconds of the audio are spoken; 0 = all
    double crf = 18.0;         // H.264 quality, 0 (lossless) .. 51
    std::string preset = "veryfast";      // libx264 preset
    std::filesystem::path export_motion;  // .csv, .json or .npz; empty = none
    std::filesystem::path cadence_plan;   // .json, and a picture beside it (.svg); empty = none
    SessionOptions session;
    LogSink log;
};

struct RenderProgress {
    int64_t frames = 0;                   // written so far
    std::optional<int64_t> total_frames;  // when the container tells the duration
};

struct RenderReport {
    int64_t frames = 0;
    double audio_s = 0.0;
    double wall_s = 0.0;                 // from the call to the finished file
    double rtf = 0.0;                    // wall_s / audio_s
    double fps = 0.0;                    // frames / wall_s
    double time_to_first_frame_s = 0.0;  // from the call to the first finished frame
    std::string audio_codec;             // of the source
    std::string audio_carry;             // "copy", "aac" or "none"
    SessionStats session;                // stages include "media" and "encode"
};

// Renders one job. The output appears under its final name only when it is complete. `progress` is
// called from another thread after every frame; returning false cancels (Error(cancelled)).
NEWSCASTER_EXPORT RenderReport
render_file(const Engine& engine, const AvatarPtr& avatar, const RenderJob& job,
            const std::function<bool(const RenderProgress&)>& progress);

// Checks a job without an engine, in milliseconds: the audio opens and holds samples, the places
// of the results are writable, the options make sense for the pack. Standard input is not touched.
NEWSCASTER_EXPORT void check_job(const RenderJob& job, const std::filesystem::path& pack);

}  // namespace newscaster
