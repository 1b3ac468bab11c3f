// What comes out: containers, tags, formats, paths, repeatability (cases P21 and P22).
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <fstream>
#include <sstream>

#include "e2e/inputs.h"
#include "e2e/media_probe.h"
#include "e2e/program.h"

namespace newscaster::e2e {
namespace {

namespace fs = std::filesystem;

constexpr int kWidth = 1920;
constexpr int kHeight = 1080;

std::string bytes_of(const fs::path& file) {
    std::ifstream stream(file, std::ios::binary);
    std::ostringstream text;
    text << stream.rdbuf();
    return text.str();
}

int lines_in(const std::string& text) {
    return static_cast<int>(std::count(text.begin(), text.end(), '\n'));
}

// Ten frames.
fs::path short_speech() {
    return cut(6400);
}

TEST(Output, Mp4IsBroadcastReady) {
    const fs::path file = scratch() / "out.mp4";
    ASSERT_EQ(newscaster({"render", speech().string(), "-o", file.string()}).exit_code, 0);
    const MediaFacts facts = probe(file);
    EXPECT_EQ(facts.video.at("codec_name"), "h264");
    EXPECT_EQ(facts.video.at("width"), kWidth);
    EXPECT_EQ(facts.video.at("height"), kHeight);
    EXPECT_EQ(facts.video.at("pix_fmt"), "yuv420p");
    EXPECT_EQ(facts.video.at("color_range"), "tv");
    EXPECT_EQ(facts.video.at("color_space"), "bt709");
    EXPECT_EQ(facts.video.at("color_transfer"), "bt709");
    EXPECT_EQ(facts.video.at("color_primaries"), "bt709");
    EXPECT_EQ(facts.video.at("avg_frame_rate"), "25/1");
    EXPECT_EQ(facts.audio.at("codec_name"), "aac");
    EXPECT_EQ(facts.audio.at("sample_rate"), "22050");
    EXPECT_LT(std::abs(facts.video_s - facts.audio_s), 0.04);
    const std::string bytes = bytes_of(file);
    EXPECT_LT(bytes.find("moov"), bytes.find("mdat"));  // plays before it is loaded whole
}

// The start of a longer sound: as many frames as its seconds have, the sound cut with them.
TEST(Output, OnlyTheFirstSeconds) {
    const fs::path file = scratch() / "start.mp4";
    const auto result = newscaster(
        {"render", speech().string(), "--seconds", "0.5", "-o", file.string(), "--json"});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const auto report = nlohmann::json::parse(result.out);
    EXPECT_EQ(report.at("frames"), 13);
    EXPECT_DOUBLE_EQ(report.at("audio_s").get<double>(), 0.5);
    const MediaFacts facts = probe(file);
    EXPECT_EQ(facts.video_frames, 13);
    EXPECT_NEAR(facts.audio_s, 0.5, 0.1);
    const auto all = newscaster(
        {"render", short_speech().string(), "--seconds", "99", "-o", file.string(), "--json"});
    ASSERT_EQ(all.exit_code, 0) << all.err;
    EXPECT_EQ(nlohmann::json::parse(all.out).at("frames"), 10);
}

TEST(Output, SameSeedSameBytesOtherSeedOtherHead) {
    const fs::path folder = scratch();
    const auto render = [&](const std::string& name, const std::string& seed) {
        const auto result = newscaster({"render", speech().string(), "--seed", seed, "-o",
                                        (folder / (name + ".mp4")).string(), "--export-motion",
                                        (folder / (name + ".json")).string()});
        EXPECT_EQ(result.exit_code, 0) << result.err;
    };
    render("a", "7");
    render("b", "7");
    render("c", "8");
    EXPECT_EQ(bytes_of(folder / "a.mp4"), bytes_of(folder / "b.mp4"));
    EXPECT_EQ(bytes_of(folder / "a.json"), bytes_of(folder / "b.json"));
    const Motion a = read_motion(folder / "a.json");
    const Motion c = read_motion(folder / "c.json");
    EXPECT_GT(correlation(a.channel("jawOpen"), c.channel("jawOpen")), 0.9);
    const auto yaw_a = a.channel("yaw");
    const auto yaw_c = c.channel("yaw");
    double difference = 0.0;
    for (size_t i = 0; i < yaw_a.size(); ++i) difference += std::abs(yaw_a[i] - yaw_c[i]);
    EXPECT_GT(difference / static_cast<double>(yaw_a.size()), 0.1);  // degrees
}

TEST(Output, ControlsChangeTheMotion) {
    const fs::path folder = scratch();
    std::ofstream(folder / "controls.json")
        << R"({"frames": [{"first": 10, "last": 30, "pose_offset_deg": {"yaw": 8}}]})";
    const auto yaw = [&](const std::string& name, const std::vector<std::string>& extra) {
        std::vector<std::string> arguments{"render",
                                           speech().string(),
                                           "-o",
                                           (folder / (name + ".nv12")).string(),
                                           "--export-motion",
                                           (folder / (name + ".json")).string()};
        arguments.insert(arguments.end(), extra.begin(), extra.end());
        const auto result = newscaster(arguments);
        EXPECT_EQ(result.exit_code, 0) << result.err;
        return read_motion(folder / (name + ".json")).channel("yaw");
    };
    const auto plain = yaw("plain", {});
    const auto turned = yaw("turned", {"--controls", (folder / "controls.json").string()});
    for (size_t i = 0; i < plain.size(); ++i) {
        EXPECT_NEAR(turned[i] - plain[i], i >= 10 && i <= 30 ? 8.0 : 0.0, 1e-3) << i;
    }
    EXPECT_NE(bytes_of(folder / "plain.nv12"), bytes_of(folder / "turned.nv12"));
}

TEST(Output, RawFormats) {
    const fs::path folder = scratch();
    const auto frame_bytes = static_cast<uintmax_t>(kWidth) * kHeight * 3 / 2;
    const auto render = [&](const fs::path& output, const std::vector<std::string>& extra = {}) {
        std::vector<std::string> arguments{"render", short_speech().string(), "-o",
                                           output.string()};
        arguments.insert(arguments.end(), extra.begin(), extra.end());
        const auto result = newscaster(arguments);
        EXPECT_EQ(result.exit_code, 0) << result.err;
    };
    render(folder / "out.nv12");
    EXPECT_EQ(fs::file_size(folder / "out.nv12"), 10 * frame_bytes);
    render(folder / "out.y4m");
    EXPECT_EQ(probe(folder / "out.y4m").video_frames, 10);
    render(folder / "frames", {"--format", "png"});
    EXPECT_EQ(std::distance(fs::directory_iterator(folder / "frames"), {}), 10);
    render(folder / "out.mkv");
    EXPECT_EQ(probe(folder / "out.mkv").video_frames, 10);
}

TEST(Output, StandardInputAndOutput) {
    const fs::path folder = scratch();
    RunOptions options;
    options.stdin_file = short_speech();
    options.stdout_file = folder / "raw.nv12";
    ASSERT_EQ(newscaster({"render", "-", "--format", "nv12", "-o", "-"}, options).exit_code, 0);
    ASSERT_EQ(newscaster({"render", short_speech().string(), "-o", (folder / "b.nv12").string()})
                  .exit_code,
              0);
    EXPECT_EQ(bytes_of(folder / "raw.nv12"), bytes_of(folder / "b.nv12"));
    options.stdout_file = folder / "piped.mp4";
    ASSERT_EQ(newscaster({"render", "-", "-o", "-"}, options).exit_code, 0);
    EXPECT_EQ(probe(folder / "piped.mp4").video_frames, 10);
}

TEST(Output, ReportAndExports) {
    const fs::path folder = scratch();
    const auto result =
        newscaster({"render", speech().string(), "-o", (folder / "o.mp4").string(), "--report",
                    (folder / "r.json").string(), "--export-motion", (folder / "m.csv").string(),
                    "--progress", "plain", "-a", "mei", "--json"});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const auto report = nlohmann::json::parse(bytes_of(folder / "r.json"));
    EXPECT_EQ(nlohmann::json::parse(result.out).at("frames"), report.at("frames"));
    EXPECT_EQ(report.at("avatar"), "mei");
    for (const char* key : {"rtf", "fps", "ttff_s", "peak_rss_bytes", "wall_s"}) {
        EXPECT_GT(report.at(key).get<double>(), 0.0) << key;
    }
    std::vector<std::string> stages;
    for (const auto& stage : report.at("stages")) {
        stages.push_back(stage.at("name"));
        EXPECT_GT(stage.at("calls").get<int64_t>(), 0) << stage.at("name");
    }
    EXPECT_EQ(stages, (std::vector<std::string>{"media", "features", "motion", "warp", "decode",
                                                "composite", "encode"}));
    const std::string csv = bytes_of(folder / "m.csv");
    EXPECT_EQ(lines_in(csv), report.at("frames").get<int>() + 1);
    EXPECT_EQ(csv.substr(0, csv.find('\n')).find("Timecode,BlendShapeCount,EyeBlinkLeft"), 0U);
}

TEST(P21, AwkwardPaths) {
    const fs::path folder = scratch() / "p21 тест 数字 (1) it's & co $HOME";
    fs::create_directories(folder);
    fs::copy_file(short_speech(), folder / "speech \"16\".wav");
    RunOptions options;
    options.working_folder = folder;
    for (const std::string output : {"out.mp4", "new/dir/out.mp4", "выход 1.mp4"}) {
        const auto result = newscaster({"render", "speech \"16\".wav", "-o", output}, options);
        EXPECT_EQ(result.exit_code, 0) << output << ": " << result.err;
        EXPECT_EQ(probe(folder / output).video_frames, 10) << output;
    }
    const auto result = newscaster({"render", "speech \"16\".wav"}, options);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_TRUE(fs::exists(folder / "speech \"16\".mp4"));
}

TEST(P21, UnwritablePlaceFailsBeforeAnyWork) {
    for (const std::string output : {"/proc/x.mp4", "/proc/new/x.mp4", "/proc"}) {
        const auto result =
            newscaster({"render", speech().string(), "--format", "mp4", "-o", output});
        EXPECT_EQ(result.exit_code, 5) << output;
        EXPECT_LT(result.cpu_s, 1.0 * kSlowdown) << output;
        EXPECT_EQ(lines_in(result.err), 1) << result.err;
    }
}

TEST(Output, DevicesAreWrittenNotReplaced) {
    const auto result =
        newscaster({"render", short_speech().string(), "--format", "nv12", "-o", "/dev/null"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST(P22, NeedsNoOtherProgram) {
    const fs::path file = scratch() / "out.mp4";
    RunOptions options;
    options.environment["PATH"] = "/nonexistent";
    const auto result =
        newscaster({"render", short_speech().string(), "-o", file.string()}, options);
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const MediaFacts facts = probe(file);
    EXPECT_FALSE(facts.video.is_null());
    EXPECT_FALSE(facts.audio.is_null());
}

TEST(P22, FullDiskLeavesNothing) {
    const fs::path folder = scratch();
    RunOptions options;
    options.file_size_limit = 200'000;
    for (const std::string name : {"out.mp4", "out.nv12", "out.y4m"}) {
        const auto result =
            newscaster({"render", speech().string(), "-o", (folder / name).string()}, options);
        EXPECT_EQ(result.exit_code, 5) << name << ": " << result.err;
        EXPECT_TRUE(fs::is_empty(folder)) << name;
    }
    RunOptions full;
    full.stdout_file = "/dev/full";
    const auto result =
        newscaster({"render", speech().string(), "--format", "nv12", "-o", "-"}, full);
    EXPECT_EQ(result.exit_code, 5) << result.err;
}

TEST(Interrupt, SignalsEndCleanly) {
    for (const int signal : {SIGINT, SIGTERM}) {
        const fs::path folder = scratch();
        RunOptions options;
        options.kill_signal = signal;
        options.kill_after = std::chrono::milliseconds(1500);
        const auto result = newscaster(
            {"render", human_voice("demo-instruct").string(), "-o", (folder / "out.mp4").string()},
            options);
        EXPECT_EQ(result.exit_code, 130) << result.err;
        EXPECT_TRUE(fs::is_empty(folder));
        EXPECT_LT(result.wall_s, 4.0 * kSlowdown);
    }
}

TEST(Interrupt, KillLeavesNoFinalFile) {
    for (const int milliseconds : {50, 300, 1200}) {
        const fs::path folder = scratch();
        RunOptions options;
        options.kill_signal = SIGKILL;
        options.kill_after = std::chrono::milliseconds(milliseconds);
        newscaster(
            {"render", human_voice("demo-instruct").string(), "-o", (folder / "out.mp4").string()},
            options);
        EXPECT_FALSE(fs::exists(folder / "out.mp4"));
    }
}

TEST(Memory, DoesNotGrowWithLength) {
    if (!kMemoryIsOurs) GTEST_SKIP() << "under a sanitizer";
    const fs::path folder = scratch();
    const auto peak = [&](const std::string& seconds) {
        const fs::path audio = made("loop" + seconds + ".wav",
                                    {"-stream_loop", "-1", "-i", speech().string(), "-t", seconds});
        const auto result =
            newscaster({"render", audio.string(), "-o", (folder / (seconds + ".mp4")).string(),
                        "--preset", "ultrafast"});
        EXPECT_EQ(result.exit_code, 0) << result.err;
        return static_cast<double>(result.peak_rss_bytes);
    };
    const double short_bytes = peak("12");
    const double long_bytes = peak("36");
    EXPECT_LT(long_bytes, short_bytes * 1.05);
    EXPECT_LT(long_bytes, 1024.0 * 1024.0 * 1024.0);
}

}  // namespace
}  // namespace newscaster::e2e
