#include "pipeline/cadence_track.h"

#include <algorithm>
#include <utility>

namespace newscaster::pipeline {

CadenceTrack::CadenceTrack(const CadenceOptions& options, const pack::Manifest& manifest,
                           const motion::Composer& composer, Listener listener)
    : composer_(composer),
      listener_(std::move(listener)),
      planner_(options, manifest.keypoints),
      levels_(manifest.audio.samples_per_frame) {}

std::vector<RenderTask> CadenceTrack::push(DrivingFrame frame, const motion::PosedRow& motion) {
    motion::CadenceInput input;
    input.source = frame.source_frame;
    input.keypoints = frame.keypoints;
    input.shape = composer_.shape(motion.row, frame.source_frame);
    input.rotation = composer_.rotation(motion, frame.source_frame);
    input.level_db = levels_.take(frame.index);
    waiting_.push_back(std::move(frame));
    return tasks(planner_.push(std::move(input)));
}

std::vector<RenderTask> CadenceTrack::finish() {
    return tasks(planner_.finish());
}

std::vector<RenderTask> CadenceTrack::tasks(const std::vector<motion::CadenceStep>& steps) {
    std::vector<RenderTask> result;
    result.reserve(steps.size());
    int64_t newest_key = -1;
    for (const auto& step : steps) {
        result.push_back(task(step));
        if (step.frame.neural) newest_key = step.frame.index;
    }
    // Steps come whole segments at a time: nothing up to the newest keyframe is outstanding.
    while (first_ <= newest_key) {
        waiting_.pop_front();
        ++first_;
    }
    if (listener_) {
        std::vector<CadenceFrame> plan;
        plan.reserve(steps.size());
        for (const auto& step : steps) plan.push_back(step.frame);
        std::ranges::sort(plan, {}, &CadenceFrame::index);
        std::ranges::for_each(plan, listener_);
    }
    return result;
}

RenderTask CadenceTrack::task(const motion::CadenceStep& step) {
    RenderTask task;
    task.frame = std::move(waiting_[static_cast<size_t>(step.frame.index - first_)]);
    if (step.frame.neural) {
        task.key = std::make_shared<Keyframe>();
        task.key->index = step.frame.index;
        task.key->keypoints = task.frame.keypoints;
        keys_.push_back(task.key);
        // One more than the planner keeps: the key after a frame and those before it.
        if (keys_.size() > motion::CadencePlanner::kKeysKept + 1) keys_.pop_front();
    }
    for (const auto& source : step.sources) {
        const auto key = std::ranges::find(keys_, source.index, &Keyframe::index);
        task.sources.push_back({*key, source.prior});
    }
    return task;
}

}  // namespace newscaster::pipeline
