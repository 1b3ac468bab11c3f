// Test sounds, made once per test program with espeak-ng and ffmpeg.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace newscaster::e2e {

// About two seconds of speech, espeak-ng, 22.05 kHz mono 16 bit.
std::filesystem::path speech();

// The same speech through ffmpeg with these output arguments, under this file name.
std::filesystem::path converted(const std::string& name, const std::vector<std::string>& arguments);

// Output of an ffmpeg command whose arguments come before the file name.
std::filesystem::path made(const std::string& name, const std::vector<std::string>& arguments);

// `samples` mono samples at 16 kHz cut from the speech.
std::filesystem::path cut(int64_t samples);

// 32-bit float WAV with these values.
std::filesystem::path float_wav(const std::string& name, const std::vector<float>& values);

// A human voice: a prompt of Debian's asterisk-core-sounds-en-wav.
std::filesystem::path human_voice(const std::string& prompt);

}  // namespace newscaster::e2e
