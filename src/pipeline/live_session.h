// The order of the stages: audio -> features -> motion -> keypoints -> warp -> decode -> paste ->
// out.
//
// Threads: one analysis thread (features, motion, keypoints), `frames_in_flight` render workers
// (each draws a whole frame: warp, decode, paste; with a cadence some frames from others), one
// delivery thread. On a GPU two threads take the workers' place, see BatchOutput. Bounded queues
// between them hold back whoever is ahead; the first error stops all.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "core/bounded_queue.h"
#include "core/stage_types.h"
#include "newscaster/engine.h"
#include "pipeline/batch_cadence.h"
#include "pipeline/batch_output.h"
#include "pipeline/batch_renderer.h"
#include "pipeline/cadence_renderer.h"
#include "pipeline/cadence_track.h"
#include "pipeline/engine_impl.h"
#include "pipeline/frame_pool.h"
#include "pipeline/loaded_avatar.h"
#include "pipeline/ordered_queue.h"
#include "pipeline/stage_meter.h"

namespace newscaster::pipeline {

class LiveSession final : public Session {
  public:
    LiveSession(std::shared_ptr<const Engine::Impl> engine,
                std::shared_ptr<const LoadedAvatar> avatar, const SessionOptions& options,
                SessionCallbacks callbacks);
    LiveSession(const LiveSession&) = delete;
    LiveSession& operator=(const LiveSession&) = delete;
    ~LiveSession() override;

    void push_audio(std::span<const float> samples) override;
    void close() override;
    void wait() override;
    void cancel() noexcept override;
    [[nodiscard]] SessionStats stats() const override;

  private:
    class Analysis;

    void analyse(Analysis& analysis);
    void prepare_renderer(const SessionOptions& options);
    void render();
    void render_batches();
    // Of a session with a cadence.
    bool push_task(RenderTask task);
    void close_tasks();
    // Pastes and hands over; false when the session stops.
    bool finish_frame(const DrivingFrame& job, std::span<const float> crop);
    void deliver();
    void note_pose(const PoseKinematics& given, const PoseKinematics& drawn);
    void start_threads(std::unique_ptr<Analysis> analysis);
    // Runs `body` as the stage `name`: the first exception of any stage is kept and stops all.
    template <typename Body>
    void guarded(const char* name, Body body) noexcept;
    void fail(std::exception_ptr error) noexcept;
    void throw_failure() const;

    const std::shared_ptr<const Engine::Impl> engine_;
    const std::shared_ptr<const LoadedAvatar> avatar_;
    const SessionCallbacks callbacks_;
    const Clock::time_point opened_;

    std::stop_source stop_;
    mutable std::mutex failure_mutex_;
    std::exception_ptr failure_;

    StageMeter features_meter_;
    StageMeter motion_meter_;
    StageMeter warp_meter_;
    StageMeter decode_meter_;
    StageMeter blend_meter_;  // frames in between
    StageMeter composite_meter_;
    StageMeter deliver_meter_;
    mutable std::mutex progress_mutex_;
    int64_t delivered_ = 0;
    PoseKinematics pose_given_;
    PoseKinematics pose_drawn_;
    std::optional<double> first_frame_s_;
    std::optional<double> finished_s_;

    int64_t samples_pushed_ = 0;
    bool closed_ = false;
    BoundedQueue<AudioChunk> audio_;
    BoundedQueue<DrivingFrame> jobs_;
    std::unique_ptr<CadenceRenderer> cadence_;  // takes the place of jobs_ where there is a cadence
    bool has_cadence_ = false;
    OrderedQueue<VideoFramePtr> finished_;
    FramePool pool_;
    // Where the engine is batched, the output and one of the others.
    std::unique_ptr<BatchOutput> batch_output_;
    std::unique_ptr<BatchRenderer> batches_;       // draws jobs_
    std::unique_ptr<BatchCadence> batch_cadence_;  // takes the place of cadence_
    std::vector<std::jthread> threads_;            // last: joined before anything above goes
};

}  // namespace newscaster::pipeline
