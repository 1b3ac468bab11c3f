// Avatars made of pictures, rendered (cases P12, P20 and the like, as far as they are about still
// pictures).
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "e2e/avatar_fixture.h"

namespace newscaster::e2e {
namespace {

// The pack is made by the suite of golden tests, without PyTorch.
TEST_F(Pictures, SeededDittoPackFromPictureToVideo) {
    const std::vector<std::string> pack{"--pack", NEWSCASTER_DITTO_PACK};
    const fs::path picture = bars("0x4a6a8a");
    expect_created(picture, "96,64,128", pack);

    const RunResult info = newscaster({"avatar", "info", avatar_.string(), "--json"});
    ASSERT_EQ(info.exit_code, 0) << info.err;
    const auto facts = nlohmann::json::parse(info.out);
    EXPECT_EQ(facts.at("width"), 320);
    EXPECT_EQ(facts.at("height"), 256);
    EXPECT_EQ(facts.at("source_frames"), 1);
    EXPECT_EQ(facts.at("name"), "avatar");

    const fs::path speaking = render(cut(16000), "speech.mp4", pack);
    const MediaFacts media = probe(speaking);
    EXPECT_EQ(media.video_frames, 25);
    EXPECT_EQ(media.video.at("width"), 320);
    EXPECT_EQ(media.video.at("color_space"), "bt709");
    EXPECT_EQ(media.video.at("color_range"), "tv");
    // The crop and one macroblock round it: the codec rings there, next to this pack's noise.
    const Square pasted{80, 48, 240, 208};
    const Pixels source(picture);
    for (const int frame : {0, 24}) expect_untouched(Pixels(speaking, frame), source, pasted, 8);
    // The crop is drawn, and what is drawn depends on the sound.
    const Pixels last(speaking, 4);
    EXPECT_GT(mean_difference(last, source, {128, 96, 192, 160}), 5.0);
    const fs::path hum = made("hum.wav", {"-f", "lavfi", "-i", "sine=f=300:r=16000:d=0.2"});
    const fs::path other = render(hum, "hum.mp4", pack);
    EXPECT_EQ(probe(other).video_frames, 5);
    EXPECT_GT(mean_difference(last, Pixels(other, 4), pasted), 0.2);
    expect_untouched(Pixels(other, 4), source, pasted, 8);
}

TEST_F(Pictures, DefaultPackOnWhiteAndOnGrey) {
    for (const char* background : {"white", "0x808080"}) {
        const fs::path picture = bars(background);
        expect_created(picture, "96,64,128");
        const fs::path video = render(cut(3200), "out.mp4");
        const MediaFacts media = probe(video);
        EXPECT_EQ(media.video_frames, 5);
        EXPECT_EQ(media.video.at("color_space"), "bt709");
        EXPECT_EQ(media.video.at("color_range"), "tv");
        expect_untouched(Pixels(video, 4), Pixels(picture), {96, 64, 224, 192}, 8);
    }
}

TEST_F(Pictures, APortraitSpeaks) {
    expect_created(portrait(), kPortraitCrop);
    const fs::path video = render(speech(), "speech.mp4", {"--seed", "3"});
    const Pixels picture(portrait());
    // The face stays the picture's own: near the source where a stranger's face would not be.
    const Square face{280, 90, 360, 200};
    EXPECT_LT(mean_difference(Pixels(video, 0), picture, face), 25.0);
    EXPECT_GT(mean_difference(Pixels(video, 0), Pixels(video, 30), face), 1.0);
}

TEST_F(Pictures, ATurnedBoxComesBackWhereItWas) {
    // The head is turned by the crop and turned back by paste-back.
    const fs::path turned = made("turned_portrait.png",
                                 {"-i", portrait().string(), "-vf", "rotate=20*PI/180:c=0x808080"});
    expect_created(turned, "236,53,167,20");
    const fs::path straight_box = render(cut(640), "turned.mp4");
    EXPECT_LT(mean_difference(Pixels(straight_box), Pixels(turned), {260, 80, 380, 190}), 25.0);
}

}  // namespace
}  // namespace newscaster::e2e
