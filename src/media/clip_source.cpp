#include "media/clip_source.h"

#include <fmt/format.h>

extern "C" {
#include <libavutil/display.h>
}

#include <cmath>
#include <string>
#include <utility>

#include "media/frame_reader.h"
#include "media/frame_to_rgb.h"
#include "media/input.h"
#include "newscaster/error.h"

namespace newscaster::media {

namespace {

constexpr int kHdHeight = 720;    // untagged video from here on is BT.709, below BT.601
constexpr double kSlackS = 1e-3;  // containers round timestamps, often to milliseconds

// The EXIF orientation that says the same as the stream's display matrix.
int orientation_of(const AVStream& stream, const std::string& name) {
    const auto* matrix = reinterpret_cast<const int32_t*>(
        av_stream_get_side_data(&stream, AV_PKT_DATA_DISPLAYMATRIX, nullptr));
    if (matrix == nullptr) return 1;
    const double determinant =
        static_cast<double>(matrix[0]) * matrix[4] - static_cast<double>(matrix[1]) * matrix[3];
    const double turn = -av_display_rotation_get(matrix);  // clockwise
    const auto quarters = std::isfinite(turn) ? std::lround(turn / 90.0) : 0;
    if (determinant <= 0.0 || std::abs(turn - 90.0 * static_cast<double>(quarters)) > 1.0) {
        throw Error(
            ErrorCode::bad_input,
            fmt::format("{}: found a display matrix that mirrors or turns by {:.0f} degrees, "
                        "wanted quarter turns",
                        name, turn));
    }
    constexpr int kOrientations[] = {1, 6, 3, 8};
    return kOrientations[((quarters % 4) + 4) % 4];
}

// The lines of the second field are drawn between those of the first.
void deinterlace(RgbImage& image, bool top_first) {
    const auto row_bytes = static_cast<size_t>(image.width) * 3;
    const auto row = [&](int y) {
        return image.pixels.data() + static_cast<size_t>(y) * row_bytes;
    };
    for (int y = top_first ? 1 : 0; y < image.height; y += 2) {
        const uint8_t* above = row(y > 0 ? y - 1 : y + 1);
        const uint8_t* below = row(y + 1 < image.height ? y + 1 : y - 1);
        uint8_t* target = row(y);
        for (size_t i = 0; i < row_bytes; ++i) {
            target[i] = static_cast<uint8_t>((above[i] + below[i] + 1) / 2);
        }
    }
}

class LibavClip final : public ClipSource {
  public:
    LibavClip(const std::filesystem::path& file, Rational fps, const PictureLimits& limits,
              const Backdrop& backdrop)
        : name_(file.string()),
          fps_(fps.to_double()),
          input_(open_input(name_, "a video")),
          reader_(input_, name_, limits),
          orientation_(orientation_of(reader_.stream(), name_)),
          converter_(backdrop, orientation_),
          shrink_to_(limits.shrink_to) {
        const AVRational rate =
            av_guess_frame_rate(input_.format.get(), &reader_.stream(), nullptr);
        if (rate.num > 0 && rate.den > 0) interval_s_ = av_q2d(av_inv_q(rate));
        ahead_ = reader_.next();
        if (!ahead_) fail_to_decode(name_, "it holds no pictures");
        width_ = ahead_->width;
        height_ = ahead_->height;
        start_s_ = time_of(*ahead_, 0.0);
        ahead_s_ = 0.0;
    }

    std::optional<RgbImage> read() override {
        const double now_s = static_cast<double>(index_) / fps_;
        while (ahead_ && ahead_s_ <= now_s + kSlackS) advance();
        if (!ahead_ && now_s >= shown_s_ + interval_s_ - kSlackS) return std::nullopt;
        ++index_;
        if (shown_) picture_ = to_picture(*std::exchange(shown_, nullptr));
        return picture_;
    }

  private:
    [[nodiscard]] double time_of(const AVFrame& frame, double otherwise_s) const {
        if (frame.best_effort_timestamp == AV_NOPTS_VALUE) return otherwise_s;
        return static_cast<double>(frame.best_effort_timestamp) *
               av_q2d(reader_.stream().time_base);
    }

    void advance() {
        shown_ = std::exchange(ahead_, reader_.next());
        const double before_s = std::exchange(shown_s_, ahead_s_);
        if (!ahead_) return;
        ahead_s_ = time_of(*ahead_, start_s_ + shown_s_ + interval_s_) - start_s_;
        // Time that stands still or runs backwards is no time.
        if (ahead_s_ <= shown_s_) ahead_s_ = shown_s_ + interval_s_;
        if (shown_s_ > before_s) interval_s_ = shown_s_ - before_s;
    }

    [[nodiscard]] RgbImage to_picture(const AVFrame& frame) {
        if (frame.width != width_ || frame.height != height_) {
            throw Error(ErrorCode::bad_input,
                        fmt::format("{}: the picture changes from {}x{} to {}x{}, wanted one size",
                                    name_, width_, height_, frame.width, frame.height));
        }
        const AVRational pixel = av_guess_sample_aspect_ratio(
            input_.format.get(), &reader_.stream(), const_cast<AVFrame*>(&frame));
        const double aspect = pixel.num > 0 && pixel.den > 0 ? av_q2d(pixel) : 1.0;
        const auto width = static_cast<int>(std::lround(width_ * std::max(aspect, 1.0)));
        const auto height = static_cast<int>(std::lround(height_ / std::min(aspect, 1.0)));
        RgbImage image = converter_.convert(
            frame, width, height, height_ < kHdHeight ? SWS_CS_ITU601 : SWS_CS_ITU709, name_);
        if (frame.interlaced_frame != 0 && height == height_) {
            deinterlace(image, frame.top_field_first != 0);
        }
        return shrink(make_upright(std::move(image), orientation_), shrink_to_);
    }

    std::string name_;
    double fps_;
    Input input_;
    FrameReader reader_;
    int orientation_;
    RgbConverter converter_;
    int shrink_to_;
    int width_ = 0;
    int height_ = 0;
    double start_s_ = 0.0;
    double interval_s_ = 0.04;  // between frames; the last one is shown that long
    AvFramePtr ahead_;          // first frame after those shown
    double ahead_s_ = 0.0;      // its time after the first frame
    AvFramePtr shown_;          // to be converted
    double shown_s_ = 0.0;
    RgbImage picture_;
    int64_t index_ = 0;
};

}  // namespace

std::unique_ptr<ClipSource> ClipSource::open(const std::filesystem::path& file, Rational fps,
                                             const PictureLimits& limits,
                                             const Backdrop& backdrop) {
    return std::make_unique<LibavClip>(file, fps, limits, backdrop);
}

}  // namespace newscaster::media
