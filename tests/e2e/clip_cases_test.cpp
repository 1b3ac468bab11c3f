// Videos in: newscaster avatar create of a clip (cases P11, P12, P30), played as a mirror loop.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "e2e/inputs.h"
#include "e2e/media_probe.h"
#include "e2e/program.h"

namespace newscaster::e2e {
namespace {

namespace fs = std::filesystem;

// Ten frames' time of a bundled presenter at 50 frames a second, with sound.
fs::path clip() {
    return made("clip.mp4", {"-loop", "1", "-framerate", "50", "-i",
                             std::string(NEWSCASTER_SOURCE_DIR) + "/avatars/anna/canvas.png", "-f",
                             "lavfi", "-i", "sine", "-vf", "scale=640:360:flags=area", "-t", "0.4",
                             "-pix_fmt", "yuv420p"});
}

TEST(Clips, AClipSpeaks) {
    const fs::path folder = scratch();
    const fs::path avatar = folder / "avatar";
    const RunResult made_avatar =
        newscaster({"--json", "avatar", "create", clip().string(), "-o", avatar.string()});
    ASSERT_EQ(made_avatar.exit_code, 0) << made_avatar.err;
    const auto facts = nlohmann::json::parse(made_avatar.out);
    EXPECT_EQ(facts.at("source_frames"), 10);
    EXPECT_EQ(facts.at("width"), 640);
    EXPECT_EQ(fs::file_size(avatar / "canvas.nv12"), 10U * 640 * 360 * 3 / 2);

    const fs::path video = folder / "out.mp4";
    const RunResult rendered =
        newscaster({"render", cut(16000).string(), "-a", avatar.string(), "-o", video.string()});
    ASSERT_EQ(rendered.exit_code, 0) << rendered.err;
    EXPECT_EQ(probe(video).video.at("height"), 360);
}

TEST(Clips, FramesWithoutAFaceAreNamed) {
    const fs::path avatar = scratch() / "avatar";
    const fs::path file = made("nobody.mp4", {"-f", "lavfi", "-i", "testsrc2=s=320x240:r=25:d=1"});
    const RunResult result = newscaster({"avatar", "create", file.string(), "-o", avatar.string()});
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_NE(result.err.find("0.00 s: no face"), std::string::npos) << result.err;
    EXPECT_FALSE(fs::exists(avatar));
}

}  // namespace
}  // namespace newscaster::e2e
