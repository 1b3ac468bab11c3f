#include "pipeline/frame_pool.h"

#include <algorithm>
#include <utility>

namespace newscaster::pipeline {

FramePool::FramePool(int width, int height, Rational fps)
    : width_(width), height_(height), fps_(fps), shelf_(std::make_shared<Shelf>()) {}

FramePool::Slot FramePool::acquire(int64_t source, const Nv12Image& background) {
    Slot slot;
    {
        const std::lock_guard lock(shelf_->mutex);
        auto& slots = shelf_->slots;
        if (!slots.empty()) {
            auto best = std::find_if(slots.begin(), slots.end(),
                                     [&](const Slot& other) { return other.source_ == source; });
            if (best == slots.end()) best = std::prev(slots.end());
            slot = std::move(*best);
            slots.erase(best);
        }
    }
    if (!slot.canvas_) {
        slot.canvas_ = std::make_unique<Nv12Image>();
        slot.source_ = -1;
    }
    if (slot.source_ != source) {
        *slot.canvas_ = background;
        slot.source_ = source;
    }
    return slot;
}

VideoFramePtr FramePool::publish(Slot slot, int64_t index) const {
    struct Owned {
        VideoFrame frame;
        Slot slot;
    };
    auto owned = std::make_unique<Owned>();
    owned->slot = std::move(slot);
    owned->frame = {.index = index,
                    .timestamp_s = static_cast<double>(index) * static_cast<double>(fps_.den) /
                                   static_cast<double>(fps_.num),
                    .width = width_,
                    .height = height_,
                    .y = owned->slot.y(),
                    .uv = owned->slot.uv(),
                    .y_stride = owned->slot.stride(),
                    .uv_stride = owned->slot.stride()};
    const VideoFrame* frame = &owned->frame;
    return {frame, [shelf = shelf_, owner = owned.release()](const VideoFrame*) {
                const std::unique_ptr<Owned> reclaimed(owner);
                const std::lock_guard lock(shelf->mutex);
                shelf->slots.push_back(std::move(reclaimed->slot));
            }};
}

}  // namespace newscaster::pipeline
