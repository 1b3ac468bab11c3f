// Helpers of the tests of media and encode: scratch folders, WAV files, the ffmpeg program.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <numbers>
#include <random>
#include <string>
#include <vector>

namespace newscaster::media::testing {

// An empty folder, removed with everything in it.
class ScratchFolder {
  public:
    ScratchFolder() {
        static std::atomic<unsigned> counter{0};
        path_ = std::filesystem::temp_directory_path() /
                fmt::format("newscaster-test-{}-{}", ::getpid(), counter.fetch_add(1));
        std::filesystem::create_directories(path_);
    }
    ScratchFolder(const ScratchFolder&) = delete;
    ScratchFolder& operator=(const ScratchFolder&) = delete;
    ~ScratchFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }

    [[nodiscard]] const std::filesystem::path& path() const { return path_; }
    [[nodiscard]] std::string file(const std::string& name) const {
        return (path_ / name).string();
    }
    [[nodiscard]] size_t entries() const {
        const std::filesystem::directory_iterator all(path_);
        return static_cast<size_t>(std::distance(begin(all), end(all)));
    }

  private:
    std::filesystem::path path_;
};

inline void write_bytes(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
}

template <typename T>
void append_little_endian(std::string& bytes, T value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

// RIFF/WAVE with interleaved samples: int16_t or float.
template <typename T>
void write_wav(const std::string& path, int rate_hz, int channels, const std::vector<T>& samples) {
    const auto data_bytes = static_cast<uint32_t>(samples.size() * sizeof(T));
    const auto frame_bytes = static_cast<uint16_t>(sizeof(T) * static_cast<size_t>(channels));
    std::string bytes = "RIFF";
    append_little_endian<uint32_t>(bytes, 36 + data_bytes);
    bytes += "WAVEfmt ";
    append_little_endian<uint32_t>(bytes, 16);
    append_little_endian<uint16_t>(bytes, std::is_floating_point_v<T> ? 3 : 1);
    append_little_endian<uint16_t>(bytes, static_cast<uint16_t>(channels));
    append_little_endian<uint32_t>(bytes, static_cast<uint32_t>(rate_hz));
    append_little_endian<uint32_t>(bytes, static_cast<uint32_t>(rate_hz) * frame_bytes);
    append_little_endian<uint16_t>(bytes, frame_bytes);
    append_little_endian<uint16_t>(bytes, static_cast<uint16_t>(8 * sizeof(T)));
    bytes += "data";
    append_little_endian<uint32_t>(bytes, data_bytes);
    bytes.append(reinterpret_cast<const char*>(samples.data()), data_bytes);
    write_bytes(path, bytes);
}

inline std::vector<float> sine(double frequency_hz, int rate_hz, size_t samples,
                               double amplitude = 0.5) {
    std::vector<float> wave(samples);
    for (size_t i = 0; i < samples; ++i) {
        wave[i] = static_cast<float>(amplitude * std::sin(2.0 * std::numbers::pi * frequency_hz *
                                                          static_cast<double>(i) / rate_hz));
    }
    return wave;
}

inline std::vector<float> noise(size_t samples, unsigned seed, float amplitude = 0.3F) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> uniform(-amplitude, amplitude);
    std::vector<float> wave(samples);
    for (float& value : wave) value = uniform(random);
    return wave;
}

inline std::vector<int16_t> to_int16(const std::vector<float>& wave) {
    std::vector<int16_t> result;
    result.reserve(wave.size());
    for (const float value : wave) {
        result.push_back(static_cast<int16_t>(std::lround(value * 32767.0F)));
    }
    return result;
}

template <typename T>
std::vector<T> interleave(const std::vector<std::vector<T>>& channels) {
    std::vector<T> result;
    for (size_t i = 0; i < channels.front().size(); ++i) {
        for (const auto& channel : channels) result.push_back(channel[i]);
    }
    return result;
}

template <typename Samples>
double rms(const Samples& samples) {
    double sum = 0.0;
    for (const auto value : samples) sum += static_cast<double>(value) * value;
    return std::sqrt(sum / static_cast<double>(samples.size()));
}

// Amplitude of one frequency.
template <typename Samples>
double tone_level(const Samples& samples, double frequency_hz, int rate_hz) {
    double cosine = 0.0;
    double sinus = 0.0;
    for (size_t i = 0; i < samples.size(); ++i) {
        const double phase =
            2.0 * std::numbers::pi * frequency_hz * static_cast<double>(i) / rate_hz;
        cosine += static_cast<double>(samples[i]) * std::cos(phase);
        sinus += static_cast<double>(samples[i]) * std::sin(phase);
    }
    return 2.0 * std::hypot(cosine, sinus) / static_cast<double>(samples.size());
}

// Standard output of a shell command.
inline std::string run(const std::string& command) {
    std::string output;
    const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
    std::array<char, 4096> block{};
    size_t count = 0;
    while ((count = std::fread(block.data(), 1, block.size(), pipe.get())) > 0) {
        output.append(block.data(), count);
    }
    return output;
}

// arguments: everything behind the general flags.
inline void ffmpeg(const std::string& arguments) {
    const std::string command = "ffmpeg -y -v error -nostdin " + arguments;
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
}

inline std::string ffprobe(const std::string& arguments) {
    return run("ffprobe -v error " + arguments);
}

}  // namespace newscaster::media::testing
