// Pictures as avatars: inputs, pixels of what comes out, and a fixture that makes and renders them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "e2e/inputs.h"
#include "e2e/media_probe.h"
#include "e2e/program.h"

namespace newscaster::e2e {

namespace fs = std::filesystem;

// A bundled presenter as somebody's photograph; the box is the one the bundled avatar has, scaled.
inline fs::path portrait() {
    return made("portrait.png",
                {"-i", std::string(NEWSCASTER_SOURCE_DIR) + "/avatars/anna/canvas.png", "-vf",
                 "scale=640:360:flags=area", "-frames:v", "1"});
}
inline constexpr const char* kPortraitCrop = "236,53,167";

// A flat picture with saturated bars in its corners: whatever moves colours shows there.
inline fs::path bars(const std::string& background) {
    return made("bars_" + background + ".png",
                {"-f", "lavfi", "-i",
                 "color=c=" + background +
                     ":s=320x256,format=rgb24,drawbox=x=0:y=0:w=64:h=32:c=red:t=fill,"
                     "drawbox=x=256:y=0:w=64:h=32:c=lime:t=fill,"
                     "drawbox=x=0:y=224:w=64:h=32:c=blue:t=fill,"
                     "drawbox=x=256:y=224:w=64:h=32:c=yellow:t=fill",
                 "-frames:v", "1"});
}

// 8-bit RGB of one frame of a picture or video.
class Pixels {
  public:
    explicit Pixels(const fs::path& file, int frame = 0) {
        const MediaFacts facts = probe(file);
        width_ = facts.video.at("width").get<int>();
        height_ = facts.video.at("height").get<int>();
        const std::string select = "select='eq(n," + std::to_string(frame) + ")'";
        // A video's tags name its matrix and range; a picture has none to convert.
        bytes_ = tool("ffmpeg", {"-v", "error", "-nostdin", "-i", file.string(), "-vf",
                                 select + ",scale=flags=accurate_rnd+full_chroma_int", "-frames:v",
                                 "1", "-f", "rawvideo", "-pix_fmt", "rgb24", "-"});
        EXPECT_EQ(bytes_.size(), static_cast<size_t>(width_) * static_cast<size_t>(height_) * 3);
    }

    [[nodiscard]] int width() const { return width_; }
    [[nodiscard]] int height() const { return height_; }
    [[nodiscard]] std::array<int, 3> at(int x, int y) const {
        const size_t i =
            3 * (static_cast<size_t>(y) * static_cast<size_t>(width_) + static_cast<size_t>(x));
        return {byte(i), byte(i + 1), byte(i + 2)};
    }

  private:
    [[nodiscard]] int byte(size_t i) const { return static_cast<unsigned char>(bytes_.at(i)); }

    int width_ = 0;
    int height_ = 0;
    std::string bytes_;
};

inline int distance(const std::array<int, 3>& a, const std::array<int, 3>& b) {
    int most = 0;
    for (size_t c = 0; c < a.size(); ++c) most = std::max(most, std::abs(a.at(c) - b.at(c)));
    return most;
}

struct Square {
    int x0, y0, x1, y1;
    [[nodiscard]] bool holds(int x, int y) const { return x >= x0 && x < x1 && y >= y0 && y < y1; }
};

class Pictures : public testing::Test {
  protected:
    RunResult create(const fs::path& picture, const std::string& crop,
                     const std::vector<std::string>& more = {}) {
        std::vector<std::string> arguments{"avatar", "create", picture.string(), "-o",
                                           avatar_.string()};
        if (!crop.empty()) arguments.insert(arguments.end(), {"--crop", crop});
        arguments.insert(arguments.end(), more.begin(), more.end());
        return newscaster(arguments);
    }

    void expect_created(const fs::path& picture, const std::string& crop,
                        const std::vector<std::string>& more = {}) {
        std::vector<std::string> arguments{"--force"};
        arguments.insert(arguments.end(), more.begin(), more.end());
        const RunResult result = create(picture, crop, arguments);
        EXPECT_EQ(result.exit_code, 0) << picture << ": " << result.err;
    }

    void expect_refused(const fs::path& picture, const std::string& crop, int exit_code,
                        const std::string& says, const std::vector<std::string>& more = {}) {
        const RunResult result = create(picture, crop, more);
        EXPECT_EQ(result.exit_code, exit_code) << picture << ": " << result.err;
        EXPECT_NE(result.err.find(says), std::string::npos) << picture << ": " << result.err;
        EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
        EXPECT_LT(result.cpu_s, 1.0 * kSlowdown) << picture;
        EXPECT_TRUE(result.out.empty()) << result.out;
        EXPECT_FALSE(fs::exists(avatar_)) << picture;
    }

    // Renders with the avatar just made.
    fs::path render(const fs::path& audio, const std::string& name,
                    const std::vector<std::string>& more = {}) {
        fs::path video = folder_ / name;
        std::vector<std::string> arguments{"render", audio.string(), "-a",    avatar_.string(),
                                           "-o",     video.string(), "--crf", "8"};
        arguments.insert(arguments.end(), more.begin(), more.end());
        const RunResult result = newscaster(arguments);
        EXPECT_EQ(result.exit_code, 0) << result.err;
        return video;
    }

    // Every pixel outside of `pasted` is the picture's, to two levels (case P20). Pixels within
    // `margin` of a colour edge are left out: half of the chroma samples are not stored.
    void expect_untouched(const Pixels& frame, const Pixels& picture, const Square& pasted,
                          int margin) {
        int checked = 0;
        int worst = 0;
        for (int y = margin; y < picture.height() - margin; ++y) {
            for (int x = margin; x < picture.width() - margin; ++x) {
                if (pasted.holds(x, y) || !is_flat(picture, x, y, margin)) continue;
                worst = std::max(worst, distance(frame.at(x, y), picture.at(x, y)));
                ++checked;
            }
        }
        EXPECT_GT(checked, picture.width() * picture.height() / 8);
        EXPECT_LE(worst, 2);
    }

    static bool is_flat(const Pixels& picture, int x, int y, int margin) {
        for (const int dy : {-margin, 0, margin}) {
            for (const int dx : {-margin, 0, margin}) {
                if (distance(picture.at(x, y), picture.at(x + dx, y + dy)) != 0) return false;
            }
        }
        return true;
    }

    static double mean_difference(const Pixels& a, const Pixels& b, const Square& box) {
        double sum = 0.0;
        int count = 0;
        for (int y = box.y0; y < box.y1; ++y) {
            for (int x = box.x0; x < box.x1; ++x) {
                sum += distance(a.at(x, y), b.at(x, y));
                ++count;
            }
        }
        return sum / count;
    }

    fs::path folder_ = scratch();
    fs::path avatar_ = folder_ / "avatar";
    fs::path canvas_ = avatar_ / "canvas.png";
};

}  // namespace newscaster::e2e
