#include "forensics/measurements.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

#include "core/bounded_queue.h"
#include "forensics/picture_metrics.h"
#include "newscaster/error.h"

namespace newscaster::forensics {

namespace {

constexpr int64_t kApart = 5;  // frames between two that are shown as worst

Plane luma_of(const media::VideoPicture& picture) {
    return {picture.y.data(), picture.width, picture.height};
}

Likeness likeness(const media::VideoPicture& a, const media::VideoPicture& b, const Box& box) {
    const Plane p = luma_of(a);
    const Plane q = luma_of(b);
    Likeness result{psnr_db(p, q, box, area_of(box)), 1.0};
    if (result.psnr_db) result.ssim = ssim(p, q, box, area_of(box));
    return result;
}

std::optional<double> rgb_psnr(const media::VideoPicture& a, const media::VideoPicture& b) {
    if (a.y == b.y && a.u == b.u && a.v == b.v) return std::nullopt;
    const Box all{0, 0, a.width, a.height};
    const RgbImage p = media::to_rgb(a, all);
    const RgbImage q = media::to_rgb(b, all);
    const Box wide{0, 0, 3 * a.width, a.height};
    return psnr_db({p.pixels.data(), 3 * a.width, a.height},
                   {q.pixels.data(), 3 * a.width, a.height}, wide, area_of(wide));
}

std::string rate_text(Rational fps) {
    return fmt::format("{}/{}", fps.num, fps.den);
}

struct Job {
    int64_t index = 0;
    std::vector<media::VideoPicture> pictures;
};

}  // namespace

FrameMeasures measure(const media::VideoPicture& reference, const media::VideoPicture& picture,
                      const Regions& regions) {
    FrameMeasures result;
    result.canvas = likeness(reference, picture, {0, 0, picture.width, picture.height});
    result.canvas_rgb_psnr_db = rgb_psnr(reference, picture);
    if (regions.mouth) result.mouth = likeness(reference, picture, *regions.mouth);
    if (regions.eyes) result.eyes = likeness(reference, picture, *regions.eyes);
    if (regions.face) result.seam = inspect_seam(reference, picture, *regions.face);
    return result;
}

VideoSet::VideoSet(const std::string& reference, const std::vector<std::string>& tests) {
    files_.push_back(reference);
    files_.insert(files_.end(), tests.begin(), tests.end());
    for (const std::string& file : files_) {
        sources_.push_back(media::VideoSource::open(file));
        const auto& wanted = sources_.front()->format();
        const auto& found = sources_.back()->format();
        if (found.width != wanted.width || found.height != wanted.height) {
            throw Error(
                ErrorCode::bad_input,
                fmt::format("{}: found {}x{} pixels, wanted {}x{} as in {}", file, found.width,
                            found.height, wanted.width, wanted.height, reference));
        }
        if (!(found.fps == wanted.fps)) {
            throw Error(ErrorCode::bad_input,
                        fmt::format("{}: found {} frames/s, wanted {} as in {}", file,
                                    rate_text(found.fps), rate_text(wanted.fps), reference));
        }
    }
}

std::vector<media::VideoPicture> VideoSet::next() {
    std::vector<media::VideoPicture> pictures;
    for (size_t i = 0; i < sources_.size(); ++i) {
        auto picture = sources_[i]->read();
        const bool wanted = i == 0 ? picture.has_value() : !pictures.empty();
        if (picture.has_value() != wanted) {
            throw Error(ErrorCode::bad_input,
                        fmt::format("{}: found {} {} frames, wanted as many as in {}", files_[i],
                                    picture ? "more than" : "only", frames_, files_[0]));
        }
        if (picture) pictures.push_back(std::move(*picture));
    }
    if (!pictures.empty()) ++frames_;
    return pictures;
}

Measured measure_videos(const std::string& reference, const std::vector<std::string>& tests,
                        const std::vector<std::string>& names, const Regions& regions, int threads,
                        const std::function<bool(int64_t)>& progress) {
    VideoSet videos(reference, tests);
    Measured measured;
    measured.format = videos.format();
    for (size_t i = 0; i < tests.size(); ++i) measured.tests.push_back({names[i], tests[i], {}});

    std::mutex mutex;  // guards the measures and the failure
    std::exception_ptr failure;
    std::stop_source stop;
    BoundedQueue<Job> jobs(static_cast<size_t>(threads) + 1);
    const auto work = [&] {
        try {
            while (const auto job = jobs.pop(stop.get_token())) {
                for (size_t t = 0; t < tests.size(); ++t) {
                    const FrameMeasures measures =
                        measure(job->pictures.front(), job->pictures[t + 1], regions);
                    const std::lock_guard lock(mutex);
                    auto& frames = measured.tests[t].frames;
                    const auto at = static_cast<size_t>(job->index);
                    if (frames.size() <= at) frames.resize(at + 1);
                    frames[at] = measures;
                }
            }
        } catch (...) {
            const std::lock_guard lock(mutex);
            if (!failure) failure = std::current_exception();
            stop.request_stop();
        }
    };
    {
        std::vector<std::jthread> workers;
        try {
            for (int i = 0; i < threads; ++i) workers.emplace_back(work);
            for (int64_t index = 0;; ++index) {
                auto pictures = videos.next();
                if (pictures.empty()) break;
                if (!progress(index)) {
                    throw Error(ErrorCode::cancelled, "the comparison was cancelled");
                }
                if (!jobs.push({index, std::move(pictures)}, stop.get_token())) break;
            }
            jobs.close();
        } catch (...) {
            stop.request_stop();
            throw;
        }
    }
    if (failure) std::rethrow_exception(failure);
    return measured;
}

std::vector<int64_t> worst_frames(const Measured& measured, int count) {
    std::vector<std::pair<double, int64_t>> ranked;
    for (int64_t frame = 0; frame < measured.frames(); ++frame) {
        double worst = std::numeric_limits<double>::max();
        for (const TestMeasures& test : measured.tests) {
            const FrameMeasures& m = test.frames[static_cast<size_t>(frame)];
            const auto& psnr = m.mouth ? m.mouth->psnr_db : m.canvas.psnr_db;
            worst = std::min(worst, psnr.value_or(std::numeric_limits<double>::max()));
        }
        if (worst < std::numeric_limits<double>::max()) ranked.emplace_back(worst, frame);
    }
    std::ranges::sort(ranked);
    std::vector<int64_t> frames;
    for (const auto& candidate : ranked) {
        if (static_cast<int>(frames.size()) >= count) break;
        const int64_t frame = candidate.second;
        const bool near = std::ranges::any_of(
            frames, [&](int64_t other) { return std::abs(other - frame) < kApart; });
        if (!near) frames.push_back(frame);
    }
    return frames;
}

}  // namespace newscaster::forensics
