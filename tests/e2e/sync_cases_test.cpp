// newscaster sync through the program: the offset follows a shift of the motion, of a video's sound
// and of its picture; limits; bad input.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "e2e/inputs.h"
#include "e2e/program.h"

namespace newscaster::e2e {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::HasSubstr;

constexpr double kFrameS = 0.04;

// Six seconds of the example speech, rendered once.
struct Material {
    fs::path speech, video, motion, csv;
};

const Material& material() {
    static const Material made_once = [] {
        const fs::path example = fs::path(NEWSCASTER_SOURCE_DIR) / "examples/speech.wav";
        Material m;
        m.speech = made("sync.wav", {"-i", example.string(), "-t", "6"});
        m.video = m.speech.parent_path() / "sync.mp4";
        m.motion = m.speech.parent_path() / "sync.json";
        m.csv = m.speech.parent_path() / "sync.csv";
        const auto render = [&](const fs::path& video, const fs::path& motion) {
            const auto result = newscaster({"render", m.speech.string(), "-o", video.string(),
                                            "--stride", "3", "--export-motion", motion.string()});
            EXPECT_EQ(result.exit_code, 0) << result.err;
        };
        render(m.video, m.motion);
        render(m.speech.parent_path() / "sync_csv.mp4", m.csv);
        return m;
    }();
    return made_once;
}

// The speech without its first frames: what is seen then comes late.
fs::path early(int frames) {
    return made("early" + std::to_string(frames) + ".wav",
                {"-ss", std::to_string(frames * kFrameS), "-i", material().speech.string()});
}

json sync(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "sync");
    arguments.emplace_back("--json");
    const auto result = newscaster(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return json::parse(result.out, nullptr, false);
}

TEST(Sync, TheOffsetFollowsAShiftOfTheMotion) {
    const Material& m = material();
    std::ifstream stream(m.motion);
    const json motion = json::parse(stream);
    const fs::path shifted = scratch() / "shifted.json";
    const auto measure = [&](int frames) {
        json moved = motion;
        const auto last = static_cast<int>(motion["frames"].size()) - 1;
        for (int i = 0; i <= last; ++i) {
            moved["frames"][static_cast<size_t>(i)] =
                motion["frames"][static_cast<size_t>(std::clamp(i - frames, 0, last))];
        }
        std::ofstream(shifted) << moved;
        return sync({m.speech.string(), shifted.string()});
    };
    const json in_place = measure(0);
    EXPECT_EQ(in_place.at("mouth"), "motion");
    EXPECT_NEAR(in_place.at("offset_frames"), 0.0, 0.5);
    EXPECT_GE(in_place.at("closure_recall"), 0.8);
    EXPECT_GE(in_place.at("closure_precision"), 0.8);
    for (const int frames : {-3, 3}) {
        const json moved = measure(frames);
        EXPECT_NEAR(moved.at("offset_frames").get<double>(),
                    in_place.at("offset_frames").get<double>() + frames, 0.1);
        EXPECT_NEAR(moved.at("offset_ms").get<double>(),
                    1000.0 * kFrameS * moved.at("offset_frames").get<double>(), 1e-6);
        EXPECT_LT(moved.at("closure_recall"), in_place.at("closure_recall"));
    }
    const json csv = sync({m.speech.string(), m.csv.string()});
    EXPECT_NEAR(csv.at("offset_frames").get<double>(), in_place.at("offset_frames").get<double>(),
                1e-3);
    EXPECT_EQ(csv.at("closures_met"), in_place.at("closures_met"));
}

TEST(Sync, VideosAreMeasuredByAvatarAndByLandmarks) {
    const Material& m = material();
    const std::vector<std::vector<std::string>> ways{{"-a", "anna"}, {}};
    for (const auto& way : ways) {
        const auto measure = [&](const fs::path& sound) {
            std::vector<std::string> arguments{sound.string(), m.video.string()};
            arguments.insert(arguments.end(), way.begin(), way.end());
            return sync(arguments);
        };
        const json own = measure(m.video);  // the video's own sound
        EXPECT_EQ(own.at("mouth"), way.empty() ? "landmarks" : "avatar");
        EXPECT_NEAR(own.at("offset_frames"), 0.0, 0.5);
        EXPECT_GT(own.at("correlation"), 0.6);
        EXPECT_GE(own.at("closure_recall"), 0.7);
        // Sound that starts three frames earlier: the picture comes three frames late.
        EXPECT_NEAR(measure(early(3)).at("offset_frames").get<double>(),
                    own.at("offset_frames").get<double>() + 3.0, 0.25);
    }
}

TEST(Sync, OtherFrameRatesCountInTheirOwnFrames) {
    const Material& m = material();
    const fs::path fifty = made("fifty.mp4", {"-i", m.video.string(), "-r", "50", "-crf", "12"});
    const json found = sync({early(2).string(), fifty.string(), "-a", "anna"});
    EXPECT_EQ(found.at("fps"), 50.0);
    EXPECT_NEAR(found.at("offset_frames"), 4.0, 0.5);
    EXPECT_NEAR(found.at("offset_ms"), 80.0, 10.0);
}

TEST(Sync, LimitsDecideTheExitCode) {
    const Material& m = material();
    const auto check = [&](const fs::path& sound, const std::vector<std::string>& limits) {
        std::vector<std::string> arguments{"sync", sound.string(), m.motion.string(), "-q"};
        arguments.insert(arguments.end(), limits.begin(), limits.end());
        return newscaster(arguments);
    };
    EXPECT_EQ(check(m.speech, {"--max-offset", "0", "--min-recall", "0.8"}).exit_code, 0);
    const fs::path numbers = scratch() / "numbers.json";
    const auto late = check(early(3), {"--max-offset", "2", "-o", numbers.string()});
    EXPECT_EQ(late.exit_code, 1);
    EXPECT_THAT(late.err, HasSubstr("--max-offset: found +3"));
    std::ifstream stream(numbers);
    EXPECT_NEAR(json::parse(stream).at("offset_frames"), 3.0, 0.5);
    EXPECT_EQ(check(early(3), {"--max-offset", "3"}).exit_code, 0);
    const auto unmet = check(early(3), {"--min-recall", "1", "--min-precision", "1"});
    EXPECT_EQ(unmet.exit_code, 1);
    EXPECT_THAT(unmet.err, HasSubstr("--min-recall"));
    EXPECT_THAT(unmet.err, HasSubstr("--min-precision"));
    const auto silent =
        check(float_wav("silence.wav", std::vector<float>(96000)), {"--max-offset", "15"});
    EXPECT_EQ(silent.exit_code, 1);
    EXPECT_THAT(silent.err, HasSubstr("found no offset"));
}

TEST(Sync, RefusesWhatItCannotMeasure) {
    const Material& m = material();
    const fs::path folder = scratch();
    const auto broken = [&](const char* name) {
        std::ofstream(folder / name) << "this is no recording";
        return folder / name;
    };
    const auto refused = [&](const fs::path& sound, const fs::path& picture,
                             const std::vector<std::string>& options, const std::string& reason,
                             int exit_code = 2) {
        std::vector<std::string> arguments{"sync", sound.string(), picture.string(), "-o",
                                           (folder / "numbers.json").string()};
        arguments.insert(arguments.end(), options.begin(), options.end());
        const auto before = std::distance(fs::directory_iterator(folder), {});
        const auto result = newscaster(arguments);
        EXPECT_EQ(result.exit_code, exit_code) << reason << ": " << result.err;
        EXPECT_THAT(result.err, HasSubstr(reason));
        EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
        EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}), before) << reason;
    };
    const fs::path plain = made("plain.mp4", {"-f", "lavfi", "-i", "testsrc=s=320x180:r=25:d=3"});
    refused(broken("a.wav"), m.motion, {}, "a.wav");
    refused(m.speech, broken("v.mp4"), {}, "v.mp4");
    refused(m.speech, broken("m.json"), {}, "m.json");
    refused(plain, m.motion, {}, "plain.mp4");  // no sound
    refused(m.speech, m.speech, {}, "no video");
    refused(m.speech, plain, {}, "found a face in 0 of 75 frames");
    refused(m.speech, plain, {"-a", "anna"}, "320x180");
    refused(cut(16000), m.motion, {}, "wanted at least 55");
    refused(m.speech, m.motion, {"--search", "0"}, "--search");
    refused(m.speech, m.motion, {"--min-recall", "2"}, "--min-recall");
    refused(m.speech, m.video, {"--detectors", folder.string()}, "face_detection", 5);
    refused(m.speech, m.motion, {"--pack", NEWSCASTER_SOURCE_DIR "/tests/golden/ditto/pack"},
            "pack", 3);
    refused(folder / "missing.wav", m.motion, {}, "missing.wav", 5);
}

}  // namespace
}  // namespace newscaster::e2e
