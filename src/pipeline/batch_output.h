// The end of drawing in batches on a device with streams: paste-back without a host copy in
// between, then the finished face boxes into canvases.
//
// The post stream pastes and downloads batch N while the neural stream draws batch N + 1; events
// order them. Page-locked buffers for four batches let the thread that splices boxes into canvases
// lag behind.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <vector>

#include "core/bounded_queue.h"
#include "core/stage_types.h"
#include "pipeline/engine_impl.h"
#include "pipeline/frame_pool.h"
#include "pipeline/loaded_avatar.h"
#include "pipeline/stage_meter.h"

namespace newscaster::pipeline {

class BatchOutput {
  public:
    // Takes a finished frame; false ends the work.
    using Deliver = std::function<bool(int64_t index, VideoFramePtr frame)>;

    // A batch on its way from the drawing thread to the finishing one.
    struct Slot {
        std::vector<DrivingFrame> frames;

      private:
        friend class BatchOutput;
        struct Mark {
            std::unique_ptr<device::Event> event;
            StageMeter* meter = nullptr;  // of the time until the next mark
        };
        device::BufferPtr boxes_;    // pasted, NV12, on the device; where the device pastes
        device::BufferPtr results_;  // boxes or crops, page-locked
        std::array<Mark, 5> marks_;
        size_t marked_ = 0;
    };

    // All must outlive this object; the engine's graphs are batched. composite: paste-back and
    // download on the device count once a batch, then the splice on the host once a frame. Throws
    // Error(bad_pack) when the decoder's image is not f32 [batch, 3, size, size].
    BatchOutput(const Engine::Impl& engine, const LoadedAvatar& avatar, FramePool& pool,
                StageMeter& composite);
    BatchOutput(const BatchOutput&) = delete;
    BatchOutput& operator=(const BatchOutput&) = delete;
    ~BatchOutput();

    // Whether slots that were sent are still on their way: a device at work, which would not draw
    // an incomplete batch any sooner.
    [[nodiscard]] bool busy() const { return sent_ > 0; }
    // Drawing thread: an empty slot; nullptr when a stop was requested.
    [[nodiscard]] Slot* take(const std::stop_token& stop);
    // What `stream` does from here to the next mark is counted for `meter`.
    void mark(Slot& slot, StageMeter& meter, device::Stream& stream);
    // Enqueues paste-back and download of entries 0 .. slot.frames.size() - 1 of `crops` (the
    // decoder's image, or of its shape) behind `neural`, records `crops_read` behind them, and
    // passes the slot on. False when a stop was requested.
    bool send(Slot& slot, device::Buffer& crops, device::Stream& neural, device::Event& crops_read,
              const std::stop_token& stop);
    // After the last slot.
    void close() { busy_.close(); }

    // Finishing thread: waits for batches in order, completes the pictures and delivers them.
    void finish(const Deliver& deliver, const std::stop_token& stop);

  private:
    static constexpr size_t kSlots = 4;

    void mark(Slot& slot, StageMeter* meter, device::Stream& stream);
    void record_times(const Slot& slot);
    [[nodiscard]] VideoFramePtr complete(const Slot& slot, size_t entry);

    const Engine::Impl& engine_;
    const LoadedAvatar& avatar_;
    FramePool& pool_;
    StageMeter& composite_;
    bool pastes_ = false;     // on the device; else crops come back and the compositor pastes
    size_t entry_bytes_ = 0;  // of one frame in a slot
    std::unique_ptr<device::Stream> post_;
    std::array<Slot, kSlots> slots_;
    std::atomic<int> sent_{0};
    BoundedQueue<Slot*> free_{kSlots};
    BoundedQueue<Slot*> busy_{kSlots};
};

}  // namespace newscaster::pipeline
