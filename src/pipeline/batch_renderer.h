// Draws every frame in batches on a device with streams: warp and decoder, one after the other on
// the neural stream; BatchOutput does the rest.
#pragma once

#include <array>
#include <memory>
#include <stop_token>
#include <vector>

#include "core/bounded_queue.h"
#include "core/stage_types.h"
#include "pipeline/batch_inputs.h"
#include "pipeline/batch_output.h"
#include "pipeline/engine_impl.h"
#include "pipeline/loaded_avatar.h"
#include "pipeline/stage_meter.h"

namespace newscaster::pipeline {

// How long a batch waits for its next frame before it runs with those it has. Motion comes in
// windows of many frames, so this matters at the end of a window only.
inline constexpr auto kBatchPatience = std::chrono::milliseconds(2);

class BatchRenderer {
  public:
    // Device time of a batch.
    struct Meters {
        StageMeter& warp;
        StageMeter& decode;
    };

    // All must outlive this object; the engine's graphs are batched. Throws like BatchInputs.
    BatchRenderer(const Engine::Impl& engine, const LoadedAvatar& avatar, BatchOutput& output,
                  Meters meters);
    BatchRenderer(const BatchRenderer&) = delete;
    BatchRenderer& operator=(const BatchRenderer&) = delete;
    ~BatchRenderer();

    // Enqueues batches until `jobs` is closed and empty, or a stop is requested; then closes the
    // output.
    void draw(BoundedQueue<DrivingFrame>& jobs, const std::stop_token& stop);

  private:
    static constexpr size_t kContexts = 2;

    struct Context;  // sessions and device memory of one batch

    [[nodiscard]] std::vector<DrivingFrame> gather(BoundedQueue<DrivingFrame>& jobs,
                                                   const std::stop_token& stop) const;
    bool enqueue(Context& context, BatchOutput::Slot& slot, const std::stop_token& stop);

    const Engine::Impl& engine_;
    BatchOutput& output_;
    const Meters meters_;
    std::unique_ptr<device::Stream> neural_;
    std::array<std::unique_ptr<Context>, kContexts> contexts_;
};

}  // namespace newscaster::pipeline
