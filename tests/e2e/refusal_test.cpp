// Bad input is refused in under a second, with one line that names the fault, and leaves no file.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>

#include "e2e/inputs.h"
#include "e2e/program.h"

namespace newscaster::e2e {
namespace {

namespace fs = std::filesystem;

struct Refusal {
    std::string what;
    std::vector<std::string> arguments;  // after "render"
    int exit_code;
    std::string says;  // part of the message
};

class Refusals : public testing::Test {
  protected:
    void expect(const Refusal& refusal, bool adds_output = true) {
        std::vector<std::string> arguments{"render"};
        arguments.insert(arguments.end(), refusal.arguments.begin(), refusal.arguments.end());
        if (adds_output) {
            arguments.insert(arguments.end(), {"-o", (folder_ / "result/out.mp4").string()});
        }
        const auto result = newscaster(arguments);
        EXPECT_EQ(result.exit_code, refusal.exit_code) << refusal.what << ": " << result.err;
        EXPECT_NE(result.err.find(refusal.says), std::string::npos)
            << refusal.what << ": " << result.err;
        EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1)
            << refusal.what << ": " << result.err;
        EXPECT_LT(result.cpu_s, 1.0 * kSlowdown) << refusal.what;
        EXPECT_TRUE(result.out.empty()) << refusal.what;
        EXPECT_FALSE(fs::exists(folder_ / "result/out.mp4")) << refusal.what;
    }

    fs::path file(const std::string& name, const std::string& bytes) {
        fs::path path = folder_ / name;
        std::ofstream(path, std::ios::binary) << bytes;
        return path;
    }

    // A copy of the bundled pack whose large files are links.
    fs::path pack_copy(const std::string& name) {
        const fs::path source = fs::path(NEWSCASTER_SOURCE_DIR) / "packs/studio";
        fs::path copy = folder_ / name;
        fs::create_directories(copy);
        for (const auto& entry : fs::directory_iterator(source)) {
            const fs::path target = copy / entry.path().filename();
            if (entry.path().extension() == ".onnx") {
                fs::create_symlink(entry.path(), target);
            } else {
                fs::copy_file(entry.path(), target);
            }
        }
        return copy;
    }

    void edit(const fs::path& json_file, const std::function<void(nlohmann::json&)>& change) {
        nlohmann::json json = nlohmann::json::parse(std::ifstream(json_file));
        change(json);
        std::ofstream(json_file) << json.dump(1);
    }

    fs::path folder_ = scratch();
};

TEST_F(Refusals, Audio) {
    std::string garbage(4000, '\0');
    std::mt19937 random(3);
    for (char& byte : garbage) byte = static_cast<char>(random());
    const fs::path silent_video =
        made("novoice.mp4", {"-f", "lavfi", "-i", "testsrc2=s=64x64:r=10:d=1"});
    std::vector<float> values(16000, 0.1F);
    values[8000] = std::numeric_limits<float>::quiet_NaN();
    const fs::path nan = float_wav("nan.wav", values);
    values[8000] = std::numeric_limits<float>::infinity();
    const fs::path infinite = float_wav("infinite.wav", values);

    for (const Refusal& refusal : std::vector<Refusal>{
             {"text", {file("notes.txt", "hello\n").string()}, 2, "notes.txt"},
             {"empty file", {file("empty.wav", "").string()}, 2, "empty.wav"},
             {"garbage", {file("garbage.mp3", garbage).string()}, 2, "garbage.mp3"},
             {"cut header", {file("cut.wav", "RIFF\x10").string()}, 2, "cut.wav"},
             {"no audio stream", {silent_video.string()}, 2, "no audio"},
             {"no samples", {cut(0).string()}, 2, "no samples"},
             {"NaN", {nan.string()}, 2, "nan.wav"},
             {"infinity", {infinite.string()}, 2, "infinite.wav"},
             {"missing", {(folder_ / "missing.wav").string()}, 5, "missing.wav"},
             {"folder", {folder_.string()}, 5, folder_.filename().string()}}) {
        expect(refusal);
    }
}

TEST_F(Refusals, Options) {
    const std::string audio = speech().string();
    for (const Refusal& refusal : std::vector<Refusal>{
             {"stride", {audio, "--stride", "4"}, 2, "--stride"},
             {"stride mode", {audio, "--stride-mode", "cube"}, 2, "--stride-mode"},
             {"cadence plan", {audio, "--cadence-plan", "plan.txt"}, 2, "plan.txt"},
             {"acceleration",
              {audio, "--max-angular-acceleration", "-1"},
              2,
              "--max-angular-acceleration"},
             {"fp8", {audio, "--precision", "fp8"}, 2, "fp8"},
             {"precision", {audio, "--precision", "f17"}, 2, "f17"},
             {"int8", {audio, "--precision", "int8"}, 4, "int8"},
             {"provider", {audio, "--provider", "abacus"}, 4, "abacus"},
             {"seconds", {audio, "--seconds", "-1"}, 2, "--seconds"},
             {"endless seconds", {audio, "--seconds", "inf"}, 2, "inf"},
             {"crf", {audio, "--crf", "99"}, 2, "99"},
             {"seed", {audio, "--seed", "-3"}, 2, "-3"},
             {"seed after a blank", {audio, "--seed", " -3"}, 2, " -3"},
             {"steps", {audio, "--steps", "-1"}, 2, "-1"},
             {"emotion", {audio, "--emotion", "hangry"}, 2, "hangry"},
             {"format", {audio, "--format", "avi"}, 2, "avi"},
             {"preset", {audio, "--preset", "warp9"}, 2, "warp9"},
             {"export", {audio, "--export-motion", (folder_ / "m.xls").string()}, 2, "m.xls"},
             {"unknown", {audio, "--colour", "red"}, 2, "--colour"},
             {"config",
              {audio, "--config", file("c.toml", "[render]\ncrff = 3\n").string()},
              2,
              "crff"},
             {"config that is a folder",
              {audio, "--config", folder_.string()},
              2,
              "cannot be read"},
             {"missing config", {audio, "--config", "none.toml"}, 2, "none.toml"},
             {"controls", {audio, "--controls", file("c.json", "{\"yaw\": 3}").string()}, 2, "yaw"},
             {"no controls", {audio, "--controls", (folder_ / "no.json").string()}, 5, "no.json"},
             {"avatar", {audio, "-a", "nobody"}, 3, "nobody"}}) {
        expect(refusal);
    }
    expect({"no audio", {}, 2, "audio"});
    const fs::path own = folder_ / "own.wav";
    fs::copy_file(speech(), own);
    expect({"output is input", {own.string(), "-o", own.string()}, 2, "own.wav"}, false);
    EXPECT_TRUE(fs::exists(own));
}

TEST_F(Refusals, Packs) {
    const std::string audio = speech().string();
    const auto with_pack = [&](const fs::path& pack) {
        return std::vector<std::string>{audio, "--pack", pack.string()};
    };
    expect({"missing pack", with_pack(folder_ / "none"), 3, "none"});

    const fs::path version = pack_copy("version");
    edit(version / "pack.json", [](auto& json) { json["schema_version"] = 99; });
    expect({"schema version", with_pack(version), 3, "99"});

    const fs::path missing = pack_copy("missing");
    fs::remove(missing / "warp.onnx");
    expect({"missing graph", with_pack(missing), 3, "warp.onnx"});

    const fs::path corrupt = pack_copy("corrupt");
    fs::remove(corrupt / "decoder.onnx");
    std::ofstream(corrupt / "decoder.onnx") << "not a graph";
    expect({"corrupt graph", with_pack(corrupt), 3, "decoder.onnx"});

    const fs::path broken = pack_copy("broken");
    std::ofstream(broken / "pack.json") << "{";
    expect({"broken manifest", with_pack(broken), 3, "pack.json"});

    const fs::path typo = pack_copy("typo");
    edit(typo / "pack.json", [](auto& json) { json["frame_rat"] = "25/1"; });
    expect({"unknown key", with_pack(typo), 3, "frame_rat"});
}

TEST_F(Refusals, AvatarOfAnotherPack) {
    const fs::path avatar = folder_ / "stranger";
    fs::copy(fs::path(NEWSCASTER_SOURCE_DIR) / "avatars/anna", avatar);
    edit(avatar / "avatar.json",
         [](auto& json) { json["pack"]["avatar_key"] = std::string(64, 'a'); });
    expect({"other pack", {speech().string(), "-a", avatar.string()}, 3, "stranger"});
}

TEST(Verbs, InfoVerifyAndDoctor) {
    const auto verify = newscaster({"pack", "verify", "studio"});
    EXPECT_EQ(verify.exit_code, 0) << verify.out << verify.err;
    const auto info = newscaster({"pack", "info", "studio", "--json"});
    EXPECT_EQ(nlohmann::json::parse(info.out).at("name"), "studio");
    const auto avatar = newscaster({"avatar", "info", "mei", "--json"});
    EXPECT_EQ(nlohmann::json::parse(avatar.out).at("width"), 1920);
    const auto doctor = newscaster({"doctor", "--json"});
    ASSERT_EQ(doctor.exit_code, 0) << doctor.err;
    const auto machine = nlohmann::json::parse(doctor.out);
    EXPECT_TRUE(machine.at("providers").at(0).at("available").get<bool>());
    EXPECT_EQ(newscaster({"doctor"}).exit_code, 0);
    EXPECT_EQ(newscaster({"--version"}).out.find("newscaster "), 0U);
    EXPECT_EQ(newscaster({}).exit_code, 2);
    const auto help = newscaster({"render", "--help"});
    EXPECT_EQ(help.exit_code, 0);
    EXPECT_NE(help.out.find("--export-motion"), std::string::npos);
}

TEST(Settings, PrecedenceIsFileVariableFlag) {
    const fs::path folder = scratch();
    std::ofstream(folder / "c.toml") << "[render]\nseed = \"1\"\navatar = \"marcus\"\n";
    RunOptions options;
    options.environment["NEWSCASTER_AVATAR"] = "mei";
    const auto avatar = [&](const std::vector<std::string>& extra, const RunOptions& with) {
        std::vector<std::string> arguments{
            "render",   cut(640).string(),           "-o", (folder / "o.mp4").string(), "--json",
            "--config", (folder / "c.toml").string()};
        arguments.insert(arguments.end(), extra.begin(), extra.end());
        const auto result = newscaster(arguments, with);
        EXPECT_EQ(result.exit_code, 0) << result.err;
        return nlohmann::json::parse(result.out).at("avatar").get<std::string>();
    };
    EXPECT_EQ(avatar({}, {}), "marcus");
    EXPECT_EQ(avatar({}, options), "mei");
    EXPECT_EQ(avatar({"-a", "anna"}, options), "anna");
}

}  // namespace
}  // namespace newscaster::e2e
