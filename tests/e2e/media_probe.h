// What a finished file really holds, as ffprobe and ffmpeg see it.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace newscaster::e2e {

// The moves of nlohmann::json are noexcept although they check invariants, which the linter cannot
// see to hold.
// NOLINTNEXTLINE(bugprone-exception-escape)
struct MediaFacts {
    nlohmann::json video;  // ffprobe's stream objects; null when there is none
    nlohmann::json audio;
    double video_s = 0.0;
    double audio_s = 0.0;
    int64_t video_frames = 0;  // counted by decoding
};

MediaFacts probe(const std::filesystem::path& file);

// Decoded sound, interleaved.
struct Sound {
    int rate_hz = 0;
    int channels = 0;
    std::vector<float> samples;

    // Power of one frequency in one channel over [from_s, to_s), dB re full-scale sine (Goertzel).
    [[nodiscard]] double tone_db(double frequency_hz, int channel, double from_s,
                                 double to_s) const;
};

Sound decode_sound(const std::filesystem::path& file);

// Curves of --export-motion out.json.
struct Motion {
    std::vector<std::string> names;
    std::vector<std::vector<double>> frames;

    [[nodiscard]] std::vector<double> channel(const std::string& name) const;
};

Motion read_motion(const std::filesystem::path& json_file);

[[nodiscard]] double correlation(const std::vector<double>& a, const std::vector<double>& b);
[[nodiscard]] double mean(const std::vector<double>& values, size_t from, size_t to);
[[nodiscard]] double deviation(const std::vector<double>& values);

}  // namespace newscaster::e2e
