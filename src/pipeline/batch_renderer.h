// Draws frames in batches on a device with streams: warp, decoder and paste-back without a host
// copy in between; only the finished face boxes come back.
//
// The neural stream draws batch N + 1 while the post stream pastes and downloads batch N; events
// order them. Page-locked buffers for four batches let the thread that splices boxes into canvases
// lag behind.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <vector>

#include "core/bounded_queue.h"
#include "core/stage_types.h"
#include "pipeline/batch_inputs.h"
#include "pipeline/engine_impl.h"
#include "pipeline/frame_pool.h"
#include "pipeline/loaded_avatar.h"
#include "pipeline/stage_meter.h"

namespace newscaster::pipeline {

class BatchRenderer {
  public:
    // Of warp and decode, device time of a batch; of composite, paste-back and download on the
    // device, then the splice on the host, each counted once a batch.
    struct Meters {
        StageMeter& warp;
        StageMeter& decode;
        StageMeter& composite;
    };
    // Takes a finished frame; false ends the work.
    using Deliver = std::function<bool(int64_t index, VideoFramePtr frame)>;

    // All must outlive this object; the engine's graphs are batched. Throws like BatchInputs, and
    // Error(bad_pack) when the image is not f32 [batch, 3, size, size].
    BatchRenderer(const Engine::Impl& engine, const LoadedAvatar& avatar, FramePool& pool,
                  Meters meters);
    BatchRenderer(const BatchRenderer&) = delete;
    BatchRenderer& operator=(const BatchRenderer&) = delete;
    ~BatchRenderer();

    // Thread 1: enqueues batches until `jobs` is closed and empty, or a stop is requested.
    void draw(BoundedQueue<DrivingFrame>& jobs, const std::stop_token& stop);
    // Thread 2: waits for batches in order, completes the pictures and delivers them.
    void finish(const Deliver& deliver, const std::stop_token& stop);

  private:
    static constexpr size_t kContexts = 2;
    static constexpr size_t kSlots = 4;

    struct Context;  // sessions and device memory of one batch
    struct Slot;     // page-locked memory and events of one batch

    [[nodiscard]] std::vector<DrivingFrame> gather(BoundedQueue<DrivingFrame>& jobs,
                                                   const std::stop_token& stop) const;
    void enqueue(Context& context, Slot& slot);
    void record_times(const Slot& slot);
    [[nodiscard]] VideoFramePtr complete(const Slot& slot, size_t entry);

    const Engine::Impl& engine_;
    const LoadedAvatar& avatar_;
    FramePool& pool_;
    const Meters meters_;
    const int64_t batch_;
    bool pastes_ = false;     // on the device; else crops come back and the compositor pastes
    size_t entry_bytes_ = 0;  // of one frame in a slot
    std::unique_ptr<device::Stream> neural_;
    std::unique_ptr<device::Stream> post_;
    std::array<std::unique_ptr<Context>, kContexts> contexts_;
    std::array<std::unique_ptr<Slot>, kSlots> slots_;
    BoundedQueue<Slot*> free_{kSlots};
    BoundedQueue<Slot*> busy_{kSlots};
};

}  // namespace newscaster::pipeline
