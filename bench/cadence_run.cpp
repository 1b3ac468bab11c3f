#include "cadence_run.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <string>

#include "machine.h"
#include "newscaster/error.h"

namespace newscaster::bench {

namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr double kBoxMargin = 0.05;  // around the keypoints of a group, in crop widths
constexpr int64_t kTurnReach = 3;    // frames
constexpr double kTurn = 0.003;      // crop widths; what counts as a closure or a blink

double process_core_s() {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](const timeval& t) {
        return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
    };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

Luma cut_luma(const VideoFrame& frame, const Box& box) {
    Luma face{box, {}};
    face.pixels.reserve(static_cast<size_t>(box.width()) * static_cast<size_t>(box.height()));
    for (int y = box.y0; y < box.y1; ++y) {
        const uint8_t* line = frame.y + static_cast<ptrdiff_t>(y) * frame.y_stride;
        face.pixels.insert(face.pixels.end(), line + box.x0, line + box.x1);
    }
    return face;
}

// The keypoints of a group and a margin, in the canvas, inside `limit`.
Box group_box(const std::vector<int64_t>& group, const std::vector<float>& keypoints,
              const Affine& crop, int64_t crop_size, const Box& limit) {
    const auto size = static_cast<double>(crop_size);
    double x0 = std::numeric_limits<double>::max();
    double y0 = x0;
    double x1 = -x0;
    double y1 = -x0;
    for (const int64_t k : group) {
        const auto at = static_cast<size_t>(3 * k);
        for (const double side : {-kBoxMargin, kBoxMargin}) {
            const double u = (0.5 * (1.0 + keypoints[at]) + side) * size;
            const double v = (0.5 * (1.0 + keypoints[at + 1]) + side) * size;
            const double x = crop[0] * u + crop[1] * v + crop[2];
            const double y = crop[3] * u + crop[4] * v + crop[5];
            x0 = std::min(x0, x);
            y0 = std::min(y0, y);
            x1 = std::max(x1, x);
            y1 = std::max(y1, y);
        }
    }
    return {std::max(limit.x0, static_cast<int>(x0)), std::max(limit.y0, static_cast<int>(y0)),
            std::min(limit.x1, static_cast<int>(x1) + 1),
            std::min(limit.y1, static_cast<int>(y1) + 1)};
}

// Mean and worst of a value per frame; frames without one are equal to the dense run.
class Summary {
  public:
    void add(int64_t frame, const std::optional<double>& value) {
        if (!value) {
            ++equal_;
            return;
        }
        sum_ += *value;
        ++count_;
        if (count_ == 1 || *value < worst_) {
            worst_ = *value;
            worst_frame_ = frame;
        }
    }
    [[nodiscard]] json to_json() const {
        if (count_ == 0) return {{"equal_frames", equal_}};
        return {{"mean", sum_ / static_cast<double>(count_)},
                {"worst", worst_},
                {"worst_frame", worst_frame_},
                {"equal_frames", equal_}};
    }

  private:
    double sum_ = 0.0;
    int64_t count_ = 0;
    int64_t equal_ = 0;
    double worst_ = 0.0;
    int64_t worst_frame_ = 0;
};

// Valleys of an opening, found without the planner: {all, not keyframes}.
std::pair<int, int> count_turns(const std::vector<CadenceFrame>& plan,
                                double CadenceFrame::*opening) {
    int all = 0;
    int lost = 0;
    const auto count = static_cast<int64_t>(plan.size());
    const auto highest = [&](int64_t from, int64_t to) {
        double value = 0.0;
        for (int64_t t = std::max<int64_t>(from, 0); t < std::min(to, count); ++t) {
            value = std::max(value, plan[static_cast<size_t>(t)].*opening);
        }
        return value;
    };
    for (int64_t t = 1; t + 1 < count; ++t) {
        const auto value = [&](int64_t i) { return plan[static_cast<size_t>(i)].*opening; };
        bool lowest = true;
        for (int64_t i = std::max<int64_t>(t - kTurnReach, 0);
             i <= std::min(t + kTurnReach, count - 1); ++i) {
            if (i != t && (i < t ? value(i) <= value(t) : value(i) < value(t))) lowest = false;
        }
        const double rim = std::min(highest(t - kTurnReach, t), highest(t + 1, t + 1 + kTurnReach));
        if (!lowest || rim - value(t) < kTurn) continue;
        ++all;
        if (!plan[static_cast<size_t>(t)].neural) ++lost;
    }
    return {all, lost};
}

}  // namespace

CadenceRun run_cadence(const Engine& engine, const AvatarPtr& avatar,
                       const std::vector<float>& samples, const CadenceOptions& cadence) {
    const auto& loaded = dynamic_cast<const pipeline::LoadedAvatar&>(*avatar);
    CadenceRun run;
    SessionCallbacks callbacks;
    callbacks.on_frame = [&](const VideoFramePtr& frame) {
        run.faces.push_back(cut_luma(*frame, loaded.plan(0)->roi()));
        return true;
    };
    callbacks.on_motion = [&](int64_t /*frame*/, std::span<const float> motion) {
        run.keypoints.push_back(loaded.composer().driving_keypoints(motion, 0));
    };
    if (cadence.stride != 1) {  // without a listener stride 1 takes the path without a cadence
        callbacks.on_cadence = [&](const CadenceFrame& frame) { run.plan.push_back(frame); };
    }
    SessionOptions options;
    options.cadence = cadence;
    const auto start = Clock::now();
    const double core_before = process_core_s();
    const double busy_before = machine_busy_s();
    const auto session = engine.open_session(avatar, options, std::move(callbacks));
    session->push_audio(samples);
    session->close();
    session->wait();
    run.stats = session->stats();
    for (size_t i = run.plan.size(); i < run.faces.size(); ++i) {
        CadenceFrame dense;
        dense.index = static_cast<int64_t>(i);
        run.plan.push_back(dense);
    }
    run.wall_s = std::chrono::duration<double>(Clock::now() - start).count();
    run.core_s = process_core_s() - core_before;
    run.foreign_cores = std::max(0.0, machine_busy_s() - busy_before - run.core_s) / run.wall_s;
    return run;
}

json compare_cadence(const CadenceRun& dense, const CadenceRun& run, const pack::Manifest& manifest,
                     const Affine& crop, double canvas_area) {
    Summary canvas;
    Summary mouth;
    Summary eyes;
    Summary canvas_ssim;
    Summary mouth_ssim;
    int64_t keyframes = 0;
    for (const CadenceFrame& frame : run.plan) {
        const auto t = static_cast<size_t>(frame.index);
        const Luma& a = dense.faces.at(t);
        const Luma& b = run.faces.at(t);
        if (frame.neural) {
            ++keyframes;
            if (a.pixels == b.pixels) continue;
            throw Error(ErrorCode::runtime,
                        fmt::format("keyframe {} differs from the dense run", frame.index));
        }
        const auto box = [&](const char* group) {
            return group_box(manifest.keypoints.groups.at(group), run.keypoints.at(t), crop,
                             manifest.crop.size_px, a.box);
        };
        const auto psnr = [&](const Box& part, double area) {
            return forensics::psnr_db(a.plane(), b.plane(), a.within(part), area);
        };
        const auto ssim = [&](const Box& part, double area) {
            return forensics::ssim(a.plane(), b.plane(), a.within(part), area);
        };
        const Box lips = box("lips");
        const Box lids = box("eyes");
        canvas.add(frame.index, psnr(a.box, canvas_area));
        mouth.add(frame.index, psnr(lips, forensics::area_of(lips)));
        eyes.add(frame.index, psnr(lids, forensics::area_of(lids)));
        canvas_ssim.add(frame.index, ssim(a.box, canvas_area));
        mouth_ssim.add(frame.index, ssim(lips, forensics::area_of(lips)));
    }
    const auto [closures, lost_closures] = count_turns(run.plan, &CadenceFrame::lip_opening);
    const auto [blinks, lost_blinks] = count_turns(run.plan, &CadenceFrame::eye_opening);
    const auto frames = static_cast<double>(run.plan.size());
    json stages = json::object();
    for (const auto& stage : run.stats.stages) {
        stages[stage.name] = 1000.0 * stage.busy_s / frames;
    }
    return {{"frames", run.plan.size()},
            {"neural_frames", keyframes},
            {"neural_share", static_cast<double>(keyframes) / frames},
            {"fps", frames / run.wall_s},
            {"core_ms_per_frame", 1000.0 * run.core_s / frames},
            {"foreign_cores", run.foreign_cores},
            {"stage_ms_per_frame", stages},
            {"first_frame_ms", 1000.0 * run.stats.time_to_first_frame_s.value_or(0.0)},
            {"canvas_psnr", canvas.to_json()},
            {"canvas_ssim", canvas_ssim.to_json()},
            {"mouth_psnr", mouth.to_json()},
            {"mouth_ssim", mouth_ssim.to_json()},
            {"eyes_psnr", eyes.to_json()},
            {"closures", closures},
            {"closures_lost", lost_closures},
            {"blinks", blinks},
            {"blinks_lost", lost_blinks}};
}

}  // namespace newscaster::bench
