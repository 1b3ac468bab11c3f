// How much of which keyframes makes each frame in between, as tables on a device.
#pragma once

#include <memory>
#include <span>

#include "device/key_blender.h"
#include "newscaster/cadence.h"
#include "pipeline/task_board.h"

namespace newscaster::pipeline {

// Use from one thread at a time.
class BlendTables {
  public:
    // tasks: most of them in one call of upload(). crop_size: in pixels. place: of the tables.
    BlendTables(device::Device& device, StrideMode mode, size_t tasks, int64_t crop_size,
                device::Location place = device::Location::device);

    // Throws Error(runtime) for more tasks than there is room for.
    // Computes the tables of all frames in between among `tasks` and enqueues their copy; those
    // of the call before must have been enqueued for use on the same stream.
    void upload(std::span<const RenderTask> tasks, device::Stream& stream);

    // Of task `task` of the last upload: for values without a place, for those over the crop, and
    // the offsets of pictures that move (mode frame).
    [[nodiscard]] device::KeyBlender::Grids overall(size_t task) const;
    [[nodiscard]] device::KeyBlender::Grids shares(size_t task) const;
    [[nodiscard]] device::KeyBlender::Grids x_offsets(size_t task) const;
    [[nodiscard]] device::KeyBlender::Grids y_offsets(size_t task) const;

  private:
    [[nodiscard]] device::KeyBlender::Grids grids(size_t task, size_t offset, int64_t size) const;
    void compute(const RenderTask& task, std::span<float> table) const;

    device::Device& device_;
    const StrideMode mode_;
    const int64_t crop_size_;
    size_t part_floats_;  // of one keyframe's part: overall share, shares, offsets
    size_t task_floats_;
    device::BufferPtr host_;
    device::BufferPtr values_;
    std::unique_ptr<device::Event> copied_;
};

}  // namespace newscaster::pipeline
