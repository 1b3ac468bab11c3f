#include "program_run.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "machine.h"
#include "media/audio_source.h"
#include "newscaster/error.h"

extern char** environ;  // NOLINT: POSIX

namespace newscaster::bench {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kRateHz = 16000;

template <typename T>
void append(std::string& bytes, T value) {
    static_assert(std::endian::native == std::endian::little, "WAV is little-endian");
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

std::string wav_header(uint32_t data_bytes) {
    std::string header = "RIFF";
    append<uint32_t>(header, 36 + data_bytes);
    header += "WAVEfmt ";
    append<uint32_t>(header, 16);
    append<uint16_t>(header, 1);  // integer PCM
    append<uint16_t>(header, 1);  // mono
    append<uint32_t>(header, kRateHz);
    append<uint32_t>(header, 2 * kRateHz);
    append<uint16_t>(header, 2);
    append<uint16_t>(header, 16);
    header += "data";
    append<uint32_t>(header, data_bytes);
    return header;
}

struct Exit {
    int status = 0;
    double wall_s = 0.0;
    double cpu_s = 0.0;
};

Exit run_process(std::vector<std::string> arguments) {
    std::vector<char*> argv;
    argv.reserve(arguments.size() + 1);
    for (auto& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    const auto start = Clock::now();
    pid_t child = 0;
    if (const int error = ::posix_spawn(&child, argv[0], nullptr, nullptr, argv.data(), environ)) {
        throw Error(ErrorCode::runtime,
                    fmt::format("{}: cannot be started: {}", argv[0], std::strerror(error)));
    }
    Exit result;
    rusage usage{};
    if (::wait4(child, &result.status, 0, &usage) != child) {
        throw Error(ErrorCode::runtime,
                    fmt::format("{}: cannot be waited for: {}", argv[0], std::strerror(errno)));
    }
    result.wall_s = std::chrono::duration<double>(Clock::now() - start).count();
    for (const timeval& time : {usage.ru_utime, usage.ru_stime}) {
        result.cpu_s += static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
    }
    return result;
}

}  // namespace

void write_looped_speech(const std::filesystem::path& speech, double seconds,
                         const std::filesystem::path& wav) {
    const auto samples = media::read_mono(speech.string(), kRateHz);
    const auto count = static_cast<size_t>(std::llround(seconds * kRateHz));
    std::string bytes = wav_header(static_cast<uint32_t>(2 * count));
    for (size_t i = 0; i < count; ++i) {
        const float sample = std::clamp(samples[i % samples.size()], -1.0F, 1.0F);
        append(bytes, static_cast<int16_t>(std::lround(sample * 32767.0F)));
    }
    std::ofstream stream(wav, std::ios::binary);
    stream << bytes;
    stream.close();
    if (!stream) throw Error(ErrorCode::io, wav.string() + ": cannot be written");
}

nlohmann::json run_render(const std::filesystem::path& program, const std::filesystem::path& wav,
                          const std::filesystem::path& folder) {
    const auto video = folder / "video.mp4";
    const auto report_file = folder / "report.json";
    const double busy_before_s = machine_busy_s();
    const Exit exit =
        run_process({program.string(), "--quiet", "--progress", "none", "render", wav.string(),
                     "-o", video.string(), "--report", report_file.string()});
    const double busy_s = machine_busy_s() - busy_before_s;
    if (!WIFEXITED(exit.status) || WEXITSTATUS(exit.status) != 0) {
        throw Error(ErrorCode::runtime, fmt::format("{}: wait status {}, wanted exit code 0",
                                                    program.string(), exit.status));
    }
    std::ifstream stream(report_file);
    auto report = nlohmann::json::parse(stream);
    report.erase("audio");
    report.erase("output");
    report["process_wall_s"] = exit.wall_s;
    report["start_to_frame_s"] =
        exit.wall_s - report.at("wall_s").get<double>() + report.at("ttff_s").get<double>();
    report["foreign_load_cores"] = std::max(0.0, (busy_s - exit.cpu_s) / exit.wall_s);
    report["file_bytes"] = std::filesystem::file_size(video);
    std::filesystem::remove(video);
    std::filesystem::remove(report_file);
    return report;
}

}  // namespace newscaster::bench
