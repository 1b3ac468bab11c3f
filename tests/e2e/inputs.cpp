#include "e2e/inputs.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <fstream>

#include "e2e/program.h"

namespace newscaster::e2e {

namespace fs = std::filesystem;

namespace {

// Lives as long as the program; every file in it is made at most once.
const fs::path& folder() {
    struct Holder {
        fs::path path;
        Holder() {
            std::array<char, 36> name{"/tmp/newscaster_inputs_XXXXXX"};
            path = ::mkdtemp(name.data());
        }
        Holder(const Holder&) = delete;
        Holder& operator=(const Holder&) = delete;
        ~Holder() { fs::remove_all(path); }
    };
    static const Holder holder;
    return holder.path;
}

}  // namespace

fs::path speech() {
    fs::path file = folder() / "speech.wav";
    if (!fs::exists(file)) {
        tool("espeak-ng", {"-v", "en-us", "-s", "150", "-w", file.string(),
                           "Maybe more rain in the north, sun by the bay."});
    }
    return file;
}

fs::path made(const std::string& name, const std::vector<std::string>& arguments) {
    fs::path file = folder() / name;
    if (!fs::exists(file)) {
        std::vector<std::string> command{"-y", "-v", "error", "-nostdin"};
        command.insert(command.end(), arguments.begin(), arguments.end());
        command.push_back(file.string());
        tool("ffmpeg", command);
    }
    return file;
}

fs::path converted(const std::string& name, const std::vector<std::string>& arguments) {
    std::vector<std::string> command{"-i", speech().string()};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return made(name, command);
}

fs::path cut(int64_t samples) {
    return converted(
        "cut_" + std::to_string(samples) + ".wav",
        {"-ar", "16000", "-af",
         "aresample=16000,atrim=start_sample=0:end_sample=" + std::to_string(samples)});
}

fs::path float_wav(const std::string& name, const std::vector<float>& values) {
    constexpr uint32_t kRateHz = 16000;
    const auto data_bytes = static_cast<uint32_t>(values.size() * sizeof(float));
    std::string bytes = "RIFF";
    const auto append = [&](auto value) {
        std::array<char, sizeof(value)> raw{};
        std::memcpy(raw.data(), &value, sizeof(value));
        bytes.append(raw.data(), raw.size());
    };
    append(uint32_t{36} + data_bytes);
    bytes += "WAVEfmt ";
    append(uint32_t{16});
    append(uint16_t{3});  // IEEE float
    append(uint16_t{1});
    append(kRateHz);
    append(static_cast<uint32_t>(kRateHz * sizeof(float)));
    append(uint16_t{sizeof(float)});
    append(uint16_t{32});
    bytes += "data";
    append(data_bytes);
    for (const float value : values) append(value);
    fs::path file = folder() / name;
    std::ofstream(file, std::ios::binary) << bytes;
    return file;
}

fs::path human_voice(const std::string& prompt) {
    for (const char* root :
         {"/usr/share/asterisk/sounds/en_US_f_Allison", "/usr/share/asterisk/sounds/en"}) {
        fs::path file = fs::path(root) / (prompt + ".wav");
        if (fs::exists(file)) return file;
    }
    ADD_FAILURE() << prompt << ".wav not found: is asterisk-core-sounds-en-wav installed?";
    return {};
}

}  // namespace newscaster::e2e
