// Draws the frames of a cadence in batches on a device with streams: keyframes by warp and decoder,
// the others from what keyframes left on the device.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <vector>

#include "core/bounded_queue.h"
#include "device/key_blender.h"
#include "newscaster/cadence.h"
#include "pipeline/batch_inputs.h"
#include "pipeline/batch_output.h"
#include "pipeline/blend_tables.h"
#include "pipeline/task_board.h"

namespace newscaster::pipeline {

class BatchCadence {
  public:
    // Device time; of blend, copies of keyframes included.
    struct Meters {
        StageMeter& warp;
        StageMeter& decode;
        StageMeter& blend;
    };

    // All must outlive this object; the engine's graphs are batched. Throws like BatchInputs, and
    // Error(bad_input) when the device cannot blend.
    BatchCadence(const Engine::Impl& engine, const LoadedAvatar& avatar, StrideMode mode,
                 BatchOutput& output, Meters meters);
    BatchCadence(const BatchCadence&) = delete;
    BatchCadence& operator=(const BatchCadence&) = delete;
    ~BatchCadence();

    // Every task after the keyframes it is made from.
    [[nodiscard]] BoundedQueue<RenderTask>& tasks() { return tasks_; }

    // Enqueues tasks until they are closed and done, or a stop is requested; then closes the
    // output.
    void draw(const std::stop_token& stop);

    [[nodiscard]] int64_t in_between() const { return in_between_; }

  private:
    static constexpr size_t kContexts = 2;

    struct KeyContext;    // draws keyframes
    struct FrameContext;  // draws a batch of frames out of keyframes

    void draw_keys(std::span<const RenderTask> tasks);
    bool draw_group(std::vector<RenderTask> more, bool full, const std::stop_token& stop);
    bool draw_frames(std::span<const RenderTask> tasks, size_t first, BatchOutput::Slot& slot,
                     const std::stop_token& stop);
    void fill(FrameContext& context, std::span<const RenderTask> tasks, size_t first);

    const Engine::Impl& engine_;
    const StrideMode mode_;
    BatchOutput& output_;
    const Meters meters_;
    const int64_t batch_;
    BoundedQueue<RenderTask> tasks_;
    std::unique_ptr<device::Stream> neural_;
    std::unique_ptr<device::KeyBlender> blender_;
    BlendTables tables_;
    std::unique_ptr<KeyContext> keys_;
    std::array<std::unique_ptr<FrameContext>, kContexts> frames_;
    std::vector<device::BufferPtr> kept_;  // what keyframes left, a ring of entries
    size_t ring_ = 0;
    std::vector<RenderTask> pending_;  // left of the last group: less than a batch
    size_t keys_drawn_ = 0;
    size_t batches_ = 0;
    std::atomic<int64_t> in_between_{0};
};

}  // namespace newscaster::pipeline
