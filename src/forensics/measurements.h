// Numbers of every frame of every test, and their summary.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/stage_types.h"
#include "forensics/seam.h"
#include "media/video_source.h"

namespace newscaster::forensics {

struct Regions {
    std::optional<Box> face{}, mouth{}, eyes{};
};

// Of a part of a frame, on luma. No PSNR: equal, bit for bit.
struct Likeness {
    std::optional<double> psnr_db;
    double ssim = 1.0;
};

struct FrameMeasures {
    Likeness canvas;
    std::optional<double> canvas_rgb_psnr_db;
    std::optional<Likeness> mouth, eyes;  // where the region is known
    std::optional<SeamMetrics> seam;      // where the face box is known
};

[[nodiscard]] FrameMeasures measure(const media::VideoPicture& reference,
                                    const media::VideoPicture& picture, const Regions& regions);

struct TestMeasures {
    std::string name;
    std::string file;
    std::vector<FrameMeasures> frames;
};

struct Measured {
    media::VideoFormat format;
    std::vector<TestMeasures> tests;

    [[nodiscard]] int64_t frames() const {
        return tests.empty() ? 0 : static_cast<int64_t>(tests.front().frames.size());
    }
};

// Opens a reference and its tests; all of one size and rate, else Error(bad_input).
class VideoSet {
  public:
    VideoSet(const std::string& reference, const std::vector<std::string>& tests);

    // Pictures of the next frame, the reference's first; empty at the end. Throws Error(bad_input)
    // when one ends before another.
    [[nodiscard]] std::vector<media::VideoPicture> next();
    [[nodiscard]] const media::VideoFormat& format() const { return sources_.front()->format(); }

  private:
    std::vector<std::string> files_;
    std::vector<std::unique_ptr<media::VideoSource>> sources_;
    int64_t frames_ = 0;
};

// Measures all frames with `threads` workers; a few frames are in memory at a time. `progress` is
// called from this thread with the frames read so far; false stops with Error(cancelled).
[[nodiscard]] Measured measure_videos(const std::string& reference,
                                      const std::vector<std::string>& tests,
                                      const std::vector<std::string>& names, const Regions& regions,
                                      int threads, const std::function<bool(int64_t)>& progress);

// The frames where a test looks worst (mouth, else canvas), worst first, apart from each other.
[[nodiscard]] std::vector<int64_t> worst_frames(const Measured& measured, int count);

}  // namespace newscaster::forensics
