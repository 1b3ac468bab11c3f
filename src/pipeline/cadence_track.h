// Frames with keypoints -> tasks for the render workers, by the plan of a cadence.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "core/stage_types.h"
#include "motion/cadence_plan.h"
#include "motion/composer.h"
#include "newscaster/cadence.h"
#include "pipeline/task_board.h"

namespace newscaster::pipeline {

// Lives on the analysis thread.
class CadenceTrack {
  public:
    // Every frame of the plan in index order; may be empty.
    using Listener = std::function<void(const CadenceFrame&)>;

    // Throws Error(bad_input) for options out of range. composer must outlive the track.
    CadenceTrack(const CadenceOptions& options, const pack::Manifest& manifest,
                 const motion::Composer& composer, Listener listener);

    // The session's sound, in order; ahead of the frames it belongs to.
    void hear(std::span<const float> samples) { levels_.push(samples); }

    // The next frame and the motion it came from. Returns the tasks that are settled, in order.
    std::vector<RenderTask> push(DrivingFrame frame, const motion::PosedRow& motion);
    std::vector<RenderTask> finish();

  private:
    std::vector<RenderTask> tasks(const std::vector<motion::CadenceStep>& steps);
    RenderTask task(const motion::CadenceStep& step);

    const motion::Composer& composer_;
    Listener listener_;
    motion::CadencePlanner planner_;
    motion::FrameLevels levels_;
    std::deque<DrivingFrame> waiting_;  // frames the plan has not settled, and some that it has
    int64_t first_ = 0;                 // index of waiting_.front()
    std::deque<std::shared_ptr<Keyframe>> keys_;
};

}  // namespace newscaster::pipeline
