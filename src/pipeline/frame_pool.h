// Reusable NV12 canvases. A canvas that still shows the wanted background only needs its ROI
// redrawn.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "core/stage_types.h"
#include "newscaster/types.h"

namespace newscaster::pipeline {

// Thread-safe. Frames handed out return to the pool when the last reference goes; the pool may be
// destroyed before them.
class FramePool {
  public:
    FramePool(int width, int height, Rational fps);

    // A picture being drawn; only its holder touches it until publish().
    class Slot {
      public:
        [[nodiscard]] uint8_t* y() { return canvas_->y.data(); }
        [[nodiscard]] uint8_t* uv() { return canvas_->uv.data(); }
        [[nodiscard]] int stride() const { return canvas_->width; }

      private:
        friend class FramePool;
        std::unique_ptr<Nv12Image> canvas_;
        int64_t source_ = -1;
    };

    // A canvas whose pixels outside the ROI are `background`, the picture of avatar frame `source`.
    [[nodiscard]] Slot acquire(int64_t source, const Nv12Image& background);

    [[nodiscard]] VideoFramePtr publish(Slot slot, int64_t index) const;

  private:
    struct Shelf {
        std::mutex mutex;
        std::vector<Slot> slots;
    };

    int width_;
    int height_;
    Rational fps_;
    std::shared_ptr<Shelf> shelf_;
};

}  // namespace newscaster::pipeline
