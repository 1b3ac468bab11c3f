#include "pipeline/clip_plans.h"

namespace newscaster::pipeline {

namespace {

// Frames in flight ask for neighbours; the turning points of the loop ask again.
constexpr size_t kKept = 16;

}  // namespace

ClipPlans::ClipPlans(const avatar::Avatar& avatar, int crop_size, const composite::SoftMask& mask)
    : file_(avatar.canvas_files.front()),
      width_(avatar.width),
      height_(avatar.height),
      crop_to_canvas_(avatar.crop_to_canvas),
      crop_size_(crop_size),
      mask_(mask),
      opacity_(avatar.opacity) {}

std::shared_ptr<const composite::PastePlan> ClipPlans::plan(int64_t source) {
    {
        const std::lock_guard lock(mutex_);
        for (const auto& [index, plan] : kept_) {
            if (index == source) return plan;
        }
    }
    const auto canvas = avatar::read_nv12_canvas(file_, width_, height_, source);
    const auto at = static_cast<size_t>(source);
    composite::SoftMask mask = mask_;
    mask.opacity = opacity_.at(at);
    auto plan = std::make_shared<const composite::PastePlan>(
        composite::nv12_to_rgb(canvas), crop_to_canvas_.at(at), crop_size_, mask);
    const std::lock_guard lock(mutex_);
    kept_.emplace_front(source, plan);
    if (kept_.size() > kKept) kept_.pop_back();
    return plan;
}

}  // namespace newscaster::pipeline
