// Runs programs the way a shell user would, without a shell.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace newscaster::e2e {

// What a sanitizer does to a program: time limits are multiplied by kSlowdown, memory is that of
// the sanitizer and not compared with anything.
#ifdef NEWSCASTER_SANITIZED
inline constexpr double kSlowdown = 20.0;
inline constexpr bool kMemoryIsOurs = false;
#else
inline constexpr double kSlowdown = 1.0;
inline constexpr bool kMemoryIsOurs = true;
#endif

struct RunOptions {
    std::map<std::string, std::string> environment;  // on top of the test's own
    std::filesystem::path stdin_file;                // empty = /dev/null
    std::filesystem::path stdout_file;               // empty = captured
    std::filesystem::path working_folder;            // empty = unchanged
    uint64_t file_size_limit = 0;                    // bytes a file may grow to; 0 = no limit
    int kill_signal = 0;                             // sent after kill_after
    std::chrono::milliseconds kill_after{0};
};

struct RunResult {
    int exit_code = -1;  // 128 + signal when a signal ended it
    std::string out;
    std::string err;
    double wall_s = 0.0;
    double cpu_s = 0.0;  // user and system: unlike wall_s, blind to what else the machine does
    uint64_t peak_rss_bytes = 0;
};

// program: path, or a name on PATH.
RunResult run(const std::string& program, const std::vector<std::string>& arguments,
              const RunOptions& options = {});

// The newscaster program of this build.
RunResult newscaster(const std::vector<std::string>& arguments, const RunOptions& options = {});

// A fresh empty folder for the running test.
std::filesystem::path scratch();

// Runs ffmpeg/ffprobe/espeak-ng and fails the test when it fails.
std::string tool(const std::string& program, const std::vector<std::string>& arguments);

}  // namespace newscaster::e2e
