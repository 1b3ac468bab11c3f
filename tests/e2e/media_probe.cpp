#include "e2e/media_probe.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <numbers>

#include "e2e/program.h"

namespace newscaster::e2e {

namespace {

double number_or_zero(const nlohmann::json& object, const char* key) {
    return object.contains(key) ? std::stod(object[key].get<std::string>()) : 0.0;
}

}  // namespace

MediaFacts probe(const std::filesystem::path& file) {
    const auto json = nlohmann::json::parse(
        tool("ffprobe", {"-v", "error", "-count_frames", "-show_streams", "-show_format", "-of",
                         "json", "--", file.string()}));
    MediaFacts facts;
    for (const auto& stream : json.at("streams")) {
        if (stream.at("codec_type") == "video") {
            facts.video = stream;
            facts.video_s = number_or_zero(stream, "duration");
            facts.video_frames = std::stoll(stream.at("nb_read_frames").get<std::string>());
        } else if (stream.at("codec_type") == "audio") {
            facts.audio = stream;
            facts.audio_s = number_or_zero(stream, "duration");
        }
    }
    return facts;
}

Sound decode_sound(const std::filesystem::path& file) {
    const MediaFacts facts = probe(file);
    Sound sound;
    sound.rate_hz = std::stoi(facts.audio.at("sample_rate").get<std::string>());
    sound.channels = facts.audio.at("channels").get<int>();
    const std::string bytes =
        tool("ffmpeg", {"-v", "error", "-nostdin", "-i", file.string(), "-map", "0:a:0", "-f",
                        "f32le", "-c:a", "pcm_f32le", "-"});
    sound.samples.resize(bytes.size() / sizeof(float));
    std::memcpy(sound.samples.data(), bytes.data(), sound.samples.size() * sizeof(float));
    return sound;
}

double Sound::tone_db(double frequency_hz, int channel, double from_s, double to_s) const {
    const auto frames = static_cast<int64_t>(samples.size()) / channels;
    const auto first = static_cast<int64_t>(from_s * rate_hz);
    const auto last = std::min(frames, static_cast<int64_t>(to_s * rate_hz));
    const double step = 2.0 * std::numbers::pi * frequency_hz / rate_hz;
    double real = 0.0;
    double imaginary = 0.0;
    for (int64_t i = first; i < last; ++i) {
        const double value = samples[static_cast<size_t>(i * channels + channel)];
        real += value * std::cos(step * static_cast<double>(i));
        imaginary += value * std::sin(step * static_cast<double>(i));
    }
    const double amplitude = 2.0 * std::hypot(real, imaginary) / static_cast<double>(last - first);
    return 20.0 * std::log10(std::max(amplitude, 1e-9));
}

Motion read_motion(const std::filesystem::path& json_file) {
    std::ifstream stream(json_file);
    const auto json = nlohmann::json::parse(stream);
    Motion motion;
    motion.names = json.at("names").get<std::vector<std::string>>();
    motion.frames = json.at("frames").get<std::vector<std::vector<double>>>();
    return motion;
}

std::vector<double> Motion::channel(const std::string& name) const {
    const auto found = std::find(names.begin(), names.end(), name);
    EXPECT_NE(found, names.end()) << name;
    std::vector<double> values;
    for (const auto& frame : frames) {
        values.push_back(frame.at(static_cast<size_t>(found - names.begin())));
    }
    return values;
}

double mean(const std::vector<double>& values, size_t from, size_t to) {
    double sum = 0.0;
    for (size_t i = from; i < to; ++i) sum += values.at(i);
    return sum / static_cast<double>(to - from);
}

double deviation(const std::vector<double>& values) {
    const double centre = mean(values, 0, values.size());
    double sum = 0.0;
    for (const double value : values) sum += (value - centre) * (value - centre);
    return std::sqrt(sum / static_cast<double>(values.size()));
}

double correlation(const std::vector<double>& a, const std::vector<double>& b) {
    const size_t count = std::min(a.size(), b.size());
    const double mean_a = mean(a, 0, count);
    const double mean_b = mean(b, 0, count);
    double covariance = 0.0;
    double power_a = 0.0;
    double power_b = 0.0;
    for (size_t i = 0; i < count; ++i) {
        covariance += (a[i] - mean_a) * (b[i] - mean_b);
        power_a += (a[i] - mean_a) * (a[i] - mean_a);
        power_b += (b[i] - mean_b) * (b[i] - mean_b);
    }
    return covariance / std::sqrt(power_a * power_b);
}

}  // namespace newscaster::e2e
