// Draws every frame in batches on a device with streams: warp and decoder, one after the other on
// the neural stream; BatchOutput does the rest.
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <stop_token>
#include <utility>
#include <vector>

#include "core/bounded_queue.h"
#include "core/stage_types.h"
#include "pipeline/batch_inputs.h"
#include "pipeline/batch_output.h"
#include "pipeline/engine_impl.h"
#include "pipeline/loaded_avatar.h"
#include "pipeline/stage_meter.h"

namespace newscaster::pipeline {

// Up to `most` items for one batch. An incomplete batch waits for its next item while the device is
// busy anyway, and then a moment more. Empty: closed, or a stop was requested.
template <typename T, typename Full>
std::vector<T> gather_batch(BoundedQueue<T>& queue, const BatchOutput& output, const Full& full,
                            const std::stop_token& stop) {
    // Motion comes in windows of many frames, so this matters at the end of a window only.
    constexpr auto kPatience = std::chrono::milliseconds(2);
    std::vector<T> items;
    auto next = queue.pop(stop);
    while (next) {
        items.push_back(std::move(*next));
        if (full(items)) break;
        do {
            next = queue.pop_until(stop, Clock::now() + kPatience);
        } while (!next && !stop.stop_requested() && !queue.ended() && output.busy());
    }
    return items;
}

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

    bool enqueue(Context& context, BatchOutput::Slot& slot, const std::stop_token& stop);

    const Engine::Impl& engine_;
    BatchOutput& output_;
    const Meters meters_;
    std::unique_ptr<device::Stream> neural_;
    std::array<std::unique_ptr<Context>, kContexts> contexts_;
};

}  // namespace newscaster::pipeline
