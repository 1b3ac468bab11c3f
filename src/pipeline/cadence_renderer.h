// Draws the frames of a cadence: keyframes by warp and decoder, the others from keyframes.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>

#include "core/stage_types.h"
#include "newscaster/cadence.h"
#include "pipeline/engine_impl.h"
#include "pipeline/loaded_avatar.h"
#include "pipeline/stage_meter.h"
#include "pipeline/task_board.h"

namespace newscaster::pipeline {

// Shared by all render workers of a session.
class CadenceRenderer {
  public:
    struct Meters {
        StageMeter& warp;
        StageMeter& decode;
        StageMeter& blend;
    };
    // Takes a finished crop, valid during the call; false ends the worker.
    using Deliver = std::function<bool(const DrivingFrame& frame, std::span<const float> crop)>;

    // engine and avatar must outlive this object. capacity: tasks that wait to be drawn.
    CadenceRenderer(const Engine::Impl& engine, const LoadedAvatar& avatar, StrideMode mode,
                    size_t capacity, Meters meters)
        : engine_(engine), avatar_(avatar), mode_(mode), meters_(meters), board_(capacity) {}

    [[nodiscard]] TaskBoard& board() { return board_; }

    // One worker: draws until the board is closed and empty, or a stop is requested.
    void work(const std::stop_token& stop, const Deliver& deliver);

    [[nodiscard]] int64_t keyframes() const { return keyframes_; }
    [[nodiscard]] int64_t in_between() const { return in_between_; }

  private:
    class Worker;

    const Engine::Impl& engine_;
    const LoadedAvatar& avatar_;
    const StrideMode mode_;
    const Meters meters_;
    TaskBoard board_;
    std::atomic<int64_t> keyframes_{0};
    std::atomic<int64_t> in_between_{0};
};

}  // namespace newscaster::pipeline
