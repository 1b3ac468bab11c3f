// Videos in: newscaster avatar create of a clip (cases P11, P12, P17, P19, P30), played as a mirror
// loop.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "e2e/avatar_fixture.h"

namespace newscaster::e2e {
namespace {

class Clips : public Pictures {};

// Ten frames' time of a bundled presenter at 50 frames a second, with sound.
fs::path clip() {
    return made("clip.mp4", {"-loop", "1", "-framerate", "50", "-i",
                             std::string(NEWSCASTER_SOURCE_DIR) + "/avatars/anna/canvas.png", "-f",
                             "lavfi", "-i", "sine", "-vf", "scale=640:360:flags=area", "-t", "0.4",
                             "-pix_fmt", "yuv420p"});
}

TEST_F(Clips, AClipSpeaks) {
    const RunResult made_avatar =
        newscaster({"--json", "avatar", "create", clip().string(), "-o", avatar_.string()});
    ASSERT_EQ(made_avatar.exit_code, 0) << made_avatar.err;
    const auto facts = nlohmann::json::parse(made_avatar.out);
    EXPECT_EQ(facts.at("source_frames"), 10);
    EXPECT_EQ(facts.at("width"), 640);
    EXPECT_EQ(fs::file_size(avatar_ / "canvas.nv12"), 10U * 640 * 360 * 3 / 2);

    const fs::path video = folder_ / "out.mp4";
    const RunResult rendered =
        newscaster({"render", cut(16000).string(), "-a", avatar_.string(), "-o", video.string()});
    ASSERT_EQ(rendered.exit_code, 0) << rendered.err;
    EXPECT_EQ(probe(video).video.at("height"), 360);
}

TEST_F(Clips, AClipWithoutAnyFaceIsRefused) {
    const fs::path file = made("nobody.mp4", {"-f", "lavfi", "-i", "testsrc2=s=320x240:r=25:d=1"});
    expect_refused(file, "", 2, "no face was found in any of 25 frames");
}

// The presenter, somewhere else for half a second, the presenter again: what shows no face is left
// alone, and the drawn face is there again only bit by bit.
TEST_F(Clips, FramesWithoutAFaceStayAsTheyAre) {
    const std::string anna = std::string(NEWSCASTER_SOURCE_DIR) + "/avatars/anna/canvas.png";
    const std::string filter =
        "[0]scale=640:360:flags=area,fps=25,split[a][b];[1]fps=25,setsar=1[m];"
        "[a][m][b]concat=n=3:v=1:a=0";
    const fs::path file = made("away.mp4", {"-loop",
                                            "1",
                                            "-t",
                                            "0.8",
                                            "-i",
                                            anna,
                                            "-f",
                                            "lavfi",
                                            "-t",
                                            "0.48",
                                            "-i",
                                            "testsrc2=s=640x360",
                                            "-filter_complex",
                                            filter,
                                            "-pix_fmt",
                                            "yuv420p",
                                            "-crf",
                                            "10",
                                            "-colorspace",
                                            "bt709",
                                            "-color_range",
                                            "tv"});
    const RunResult made_avatar = create(file, "", {"--json"});
    ASSERT_EQ(made_avatar.exit_code, 0) << made_avatar.err;
    EXPECT_NE(made_avatar.err.find("the first at 0.80 s"), std::string::npos) << made_avatar.err;
    const auto facts = nlohmann::json::parse(made_avatar.out);
    EXPECT_EQ(facts.at("source_frames"), 52);
    EXPECT_NE(facts.at("advice").dump().find("12 of 52 frames"), std::string::npos);

    const fs::path video = render(cut(33280), "out.mp4");
    ASSERT_EQ(probe(video).video_frames, 52);
    const Square face{280, 90, 360, 200};
    const auto difference = [&](int frame) {
        return mean_difference(Pixels(video, frame), Pixels(file, frame), face);
    };
    // As it was, but for the two encoders.
    for (const int frame : {20, 26, 31}) EXPECT_LT(difference(frame), 4.0) << frame;
    EXPECT_LT(difference(19), difference(10));
    EXPECT_LT(difference(32), difference(45));
}

// P17: so do frames in which something covers the mouth.
TEST_F(Clips, ACoveredMouthStaysAsItIs) {
    const std::string filter =
        "fps=25,scale=1280:720:flags=area,"
        "drawbox=x=590:y=300:w=100:h=60:c=0xb98a6b:t=fill:enable='between(t,0.99,1.29)'";
    const fs::path file =
        made("p17_hand.mp4",
             {"-loop", "1", "-t", "1.6", "-i",
              std::string(NEWSCASTER_SOURCE_DIR) + "/avatars/anna/canvas.png", "-vf", filter,
              "-pix_fmt", "yuv420p", "-crf", "10", "-colorspace", "bt709", "-color_range", "tv"});
    const RunResult made_avatar = create(file, "", {"--json"});
    ASSERT_EQ(made_avatar.exit_code, 0) << made_avatar.err;
    const auto report = nlohmann::json::parse(std::ifstream(avatar_ / "report.json"));
    EXPECT_EQ(report.at("frames_mouth_covered"), 8);
    EXPECT_EQ(report.at("frames_without_face"), 0);
    EXPECT_NE(report.at("advice").dump().find("covers the mouth"), std::string::npos);
    const fs::path video = render(cut(25600), "out.mp4");
    EXPECT_LT(mean_difference(Pixels(video, 28), Pixels(file, 28), {560, 190, 720, 380}), 4.0);
}

// P19: a clip of somebody who talks is told; the lips follow the new sound all the same.
// How far the mouth opens and closes in the clip an avatar was made of, as its registration saw it.
double mouth_range(const fs::path& avatar) {
    const auto report = nlohmann::json::parse(std::ifstream(avatar / "report.json"));
    const auto& open = report.at("mouth_open");
    return open.at("most").get<double>() - open.at("least").get<double>();
}

// Case P19: the old lips do not leak through; silence keeps the mouth of a talking clip calm.
TEST_F(Clips, ATalkingClipIsTold) {
    const fs::path own = folder_ / "own.mp4";
    ASSERT_EQ(
        newscaster({"render", cut(41600).string(), "-a", "anna", "-o", own.string()}).exit_code, 0);
    const fs::path talking =
        made("talking.mp4", {"-i", own.string(), "-vf", "scale=1280:720:flags=area", "-crf", "8"});
    const RunResult made_avatar = create(talking, "", {"--json"});
    ASSERT_EQ(made_avatar.exit_code, 0) << made_avatar.err;
    const auto facts = nlohmann::json::parse(made_avatar.out);
    EXPECT_NE(facts.at("advice").dump().find("talks in the clip"), std::string::npos)
        << facts.dump();
    const double talks = mouth_range(avatar_);
    const fs::path zeros =
        made("zeros.wav", {"-f", "lavfi", "-i", "anullsrc=r=16000:cl=mono", "-t", "1.5"});
    const fs::path silent = render(zeros, "silent.mp4");
    ASSERT_EQ(create(silent, "", {"--force"}).exit_code, 0);
    EXPECT_LT(mouth_range(avatar_), 0.4 * talks);
}

}  // namespace
}  // namespace newscaster::e2e
