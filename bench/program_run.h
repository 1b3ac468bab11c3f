// Runs the newscaster program once and reads what it reports.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>

namespace newscaster::bench {

// Writes `seconds` of the recording `speech`, repeated as often as needed, as 16 kHz mono WAV.
void write_looped_speech(const std::filesystem::path& speech, double seconds,
                         const std::filesystem::path& wav);

// A render as its own process: the program's --report without file names, plus
//   process_wall_s      from start to exit, as the parent sees it
//   start_to_frame_s    from process start to the first finished frame: engine and avatar loading
//                       included, and the few milliseconds of exit, which cannot be told apart
//   foreign_load_cores  what other processes used meanwhile, in cores; > 0.1 spoils the timings
//   file_bytes          size of the video
// Throws Error(runtime) when the program cannot be started or fails.
[[nodiscard]] nlohmann::json run_render(const std::filesystem::path& program,
                                        const std::filesystem::path& wav,
                                        const std::filesystem::path& folder);

}  // namespace newscaster::bench
