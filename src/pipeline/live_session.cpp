#include "pipeline/live_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "avatar/avatar.h"
#include "decode/decode_stage.h"
#include "features/feature_streamer.h"
#include "motion/motion_generator.h"
#include "motion/motion_mixer.h"
#include "motion/pose_smoothing.h"
#include "motion/stitcher.h"
#include "warp/warp_stage.h"

namespace newscaster::pipeline {

namespace {

constexpr size_t kAudioQueueChunks = 16;  // chunks are one video frame long: 0.64 s at 25 fps
constexpr int64_t kFramesAhead = 4;       // finished frames waiting for delivery, per worker

// A keyframe is drawn ahead of the frames before it: it must fit in while they are drawn.
static_assert(kFramesAhead >= motion::CadencePlanner::kLongestSegment);

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

template <typename Work>
auto timed(StageMeter& meter, Work work) {
    const StageMeter::Scope scope(meter);
    return work();
}

}  // namespace

// Everything between samples and keypoints; lives on the analysis thread.
class LiveSession::Analysis {
  public:
    Analysis(LiveSession& session, const SessionOptions& options)
        : session_(session),
          features_(session.engine_->manifest(), *session.engine_->device,
                    *session.engine_->audio_encoder),
          controls_(session.engine_->manifest(), options.controls, options.emotion),
          motion_(session.engine_->pack, *session.engine_->device,
                  *session.engine_->motion_generator, motion_options(session, options, controls_),
                  features_.silence_rows()),
          mixer_(session.engine_->pack, session.avatar_->composer().sources(),
                 mixer_options(session, options, controls_)),
          smoother_(session.engine_->manifest().motion,
                    {.smooth = options.smooth_pose,
                     .max_acceleration = options.max_angular_acceleration,
                     .fps = session.engine_->info.fps.to_double()}) {
        if (session.has_cadence_) {
            cadence_.emplace(options.cadence, session.engine_->manifest(),
                             session.avatar_->composer(), session.callbacks_.on_cadence);
        }
        const auto& manifest = session.engine_->manifest();
        const auto& composition = manifest.motion.composition;
        const bool stitching =
            options.controls.stitching.value_or(composition && composition->stitching);
        if (stitching) {
            stitcher_ = std::make_unique<motion::Stitcher>(manifest.graph(pack::role::kStitch),
                                                           *session.engine_->device,
                                                           *session.engine_->stitch);
        }
    }

    // False when the session stops.
    bool add(const AudioChunk& chunk) {
        if (cadence_) cadence_->hear(chunk.samples);
        return forward(
            timed(session_.features_meter_, [&] { return features_.push(chunk.samples); }));
    }

    bool end(int64_t total_frames) {
        auto rest = timed(session_.features_meter_, [&] { return features_.finish(total_frames); });
        if (!forward(rest)) return false;
        if (!emit(timed(session_.motion_meter_, [&] { return motion_.finish(); }))) return false;
        auto last = smooth(mixer_.finish());
        append(last, smoother_.finish());
        if (!draw(std::move(last))) return false;
        return !cadence_ || dispatch(cadence_->finish());
    }

  private:
    static uint64_t seed_of(const LiveSession& session, const SessionOptions& options) {
        return options.seed.value_or(session.engine_->manifest().motion.diffusion.default_seed);
    }

    // The avatar that the motion is made for.
    static const LoadedAvatar& character(const LiveSession& session,
                                         const SessionOptions& options) {
        if (!options.character) return *session.avatar_;
        const auto* loaded = dynamic_cast<const LoadedAvatar*>(options.character.get());
        if (loaded == nullptr || loaded->engine() != session.engine_.get()) {
            throw Error(ErrorCode::bad_input, "the character was not loaded by this engine");
        }
        return *loaded;
    }

    static motion::MotionOptions motion_options(const LiveSession& session,
                                                const SessionOptions& options,
                                                const motion::ControlTrack& controls) {
        const LoadedAvatar& character = Analysis::character(session, options);
        return {.steps = options.steps,
                .seed = seed_of(session, options),
                .controls = controls,
                .avatar = character.conditions(),
                .source_motion = character.composer().sources().front().motion};
    }

    static motion::MotionMixer::Options mixer_options(const LiveSession& session,
                                                      const SessionOptions& options,
                                                      const motion::ControlTrack& controls) {
        const double scale = session.avatar_->scale();
        return {.controls = controls,
                .seed = seed_of(session, options),
                .scale_ratio = character(session, options).scale() / scale};
    }

    bool forward(const std::vector<FeatureBlock>& blocks) {
        return std::all_of(blocks.begin(), blocks.end(), [&](const FeatureBlock& block) {
            return emit(timed(session_.motion_meter_, [&] { return motion_.push(block); }));
        });
    }

    bool emit(const std::vector<MotionBlock>& blocks) {
        std::vector<motion::MixedFrame> frames;
        for (const auto& block : blocks) {
            for (int64_t i = 0; i < block.rows.dim(0); ++i) {
                const int64_t index = block.first_frame + i;
                if (index == 0) mixer_.set_reference(motion_.reference_row());
                const int64_t source =
                    avatar::mirror_loop(index, session_.avatar_->source_frames());
                append(frames, smooth(mixer_.push(block.rows.row(i), source)));
            }
        }
        return draw(std::move(frames));
    }

    static void append(std::vector<motion::MixedFrame>& frames,
                       std::vector<motion::MixedFrame> more) {
        std::ranges::move(more, std::back_inserter(frames));
    }

    std::vector<motion::MixedFrame> smooth(std::vector<motion::MixedFrame> frames) {
        std::vector<motion::MixedFrame> smoothed;
        for (auto& frame : frames) append(smoothed, smoother_.push(std::move(frame)));
        return smoothed;
    }

    bool draw(std::vector<motion::MixedFrame> frames) {
        session_.note_pose(smoother_.given(), smoother_.drawn());
        const motion::Composer& composer = session_.avatar_->composer();
        std::vector<DrivingFrame> jobs;
        for (const auto& frame : frames) {
            auto& job = jobs.emplace_back();
            job.index = frame.index;
            job.source_frame = frame.source;
            job.keypoints = composer.driving_keypoints(frame.motion, frame.source);
        }
        stitch(jobs);
        for (size_t i = 0; i < frames.size(); ++i) {
            const motion::MixedFrame& frame = frames[i];
            if (session_.callbacks_.on_motion) {
                session_.callbacks_.on_motion(frame.index, frame.motion.row);
            }
            const bool goes_on =
                cadence_ ? dispatch(cadence_->push(std::move(jobs[i]), frame.motion))
                         : session_.jobs_.push(std::move(jobs[i]), session_.stop_.get_token());
            if (!goes_on) return false;
        }
        return true;
    }

    void stitch(std::vector<DrivingFrame>& jobs) {
        if (!stitcher_) return;
        std::vector<motion::Stitcher::Frame> frames;
        frames.reserve(jobs.size());
        for (auto& job : jobs) {
            frames.push_back(
                {session_.avatar_->composer().source_keypoints(job.source_frame), job.keypoints});
        }
        stitcher_->stitch(frames);
    }

    bool dispatch(std::vector<RenderTask> tasks) {
        return std::ranges::all_of(
            tasks, [&](RenderTask& task) { return session_.push_task(std::move(task)); });
    }

    LiveSession& session_;
    features::FeatureStreamer features_;
    motion::ControlTrack controls_;
    motion::MotionGenerator motion_;
    motion::MotionMixer mixer_;
    motion::PoseSmoother smoother_;
    std::unique_ptr<motion::Stitcher> stitcher_;  // where the session stitches
    std::optional<CadenceTrack> cadence_;
};

LiveSession::LiveSession(std::shared_ptr<const Engine::Impl> engine,
                         std::shared_ptr<const LoadedAvatar> avatar, const SessionOptions& options,
                         SessionCallbacks callbacks)
    : engine_(std::move(engine)),
      avatar_(std::move(avatar)),
      callbacks_(std::move(callbacks)),
      opened_(Clock::now()),
      features_meter_("features", opened_),
      motion_meter_("motion", opened_),
      warp_meter_("warp", opened_),
      decode_meter_("decode", opened_),
      blend_meter_("blend", opened_),
      composite_meter_("composite", opened_),
      deliver_meter_("deliver", opened_),
      audio_(kAudioQueueChunks),
      jobs_(static_cast<size_t>(engine_->manifest().motion.window_frames)),
      finished_(kFramesAhead * engine_->info.frames_in_flight),
      pool_(avatar_->width(), avatar_->height(), engine_->info.fps) {
    if (!callbacks_.on_frame) {
        throw Error(ErrorCode::bad_input, "a session needs an on_frame callback");
    }
    motion::check_acceleration(options.max_angular_acceleration);
    has_cadence_ = options.cadence.stride != 1 || callbacks_.on_cadence;
    if (has_cadence_) check_cadence(options.cadence);
    prepare_renderer(options);
    try {
        start_threads(std::make_unique<Analysis>(*this, options));
    } catch (...) {
        cancel();  // the threads that did start are joined while this object unwinds
        throw;
    }
}

LiveSession::~LiveSession() {
    cancel();
    threads_.clear();
}

void LiveSession::prepare_renderer(const SessionOptions& options) {
    if (engine_->info.batched) {
        batch_output_ = std::make_unique<BatchOutput>(*engine_, *avatar_, pool_, composite_meter_);
    }
    if (batch_output_ && has_cadence_) {
        batch_cadence_ = std::make_unique<BatchCadence>(
            *engine_, *avatar_, options.cadence.mode, *batch_output_,
            BatchCadence::Meters{warp_meter_, decode_meter_, blend_meter_});
    } else if (batch_output_) {
        batches_ = std::make_unique<BatchRenderer>(
            *engine_, *avatar_, *batch_output_, BatchRenderer::Meters{warp_meter_, decode_meter_});
    } else if (has_cadence_) {
        cadence_ = std::make_unique<CadenceRenderer>(
            *engine_, *avatar_, options.cadence.mode,
            static_cast<size_t>(engine_->manifest().motion.window_frames),
            CadenceRenderer::Meters{warp_meter_, decode_meter_, blend_meter_});
    }
}

bool LiveSession::push_task(RenderTask task) {
    const auto stop = stop_.get_token();
    return batch_cadence_ ? batch_cadence_->tasks().push(std::move(task), stop)
                          : cadence_->board().push(std::move(task), stop);
}

void LiveSession::close_tasks() {
    if (batch_cadence_) batch_cadence_->tasks().close();
    if (cadence_) cadence_->board().close();
}

void LiveSession::start_threads(std::unique_ptr<Analysis> analysis) {
    threads_.emplace_back(
        [this, owned = std::move(analysis)] { guarded("analysis", [&] { analyse(*owned); }); });
    if (batch_output_) {
        threads_.emplace_back([this] { guarded("render", [this] { render_batches(); }); });
        threads_.emplace_back([this] {
            guarded("composite", [this] {
                batch_output_->finish(
                    [this](int64_t index, VideoFramePtr frame) {
                        return finished_.push(index, std::move(frame), stop_.get_token());
                    },
                    stop_.get_token());
            });
        });
    }
    for (int i = 0; !batch_output_ && i < engine_->info.frames_in_flight; ++i) {
        threads_.emplace_back([this] { guarded("render", [this] { render(); }); });
    }
    threads_.emplace_back([this] { guarded("deliver", [this] { deliver(); }); });
}

void LiveSession::analyse(Analysis& analysis) {
    const auto stop = stop_.get_token();
    int64_t samples = 0;
    while (auto chunk = audio_.pop(stop)) {
        samples += static_cast<int64_t>(chunk->samples.size());
        if (!analysis.add(*chunk)) return;
    }
    if (stop.stop_requested()) return;
    const int64_t total = frames_covering(samples, engine_->info.sample_rate_hz, engine_->info.fps);
    finished_.finish(total);
    if (total > 0 && !analysis.end(total)) return;
    jobs_.close();
    close_tasks();
}

bool LiveSession::finish_frame(const DrivingFrame& job, std::span<const float> crop) {
    auto frame = timed(composite_meter_, [&] {
        const auto plan = avatar_->plan(job.source_frame);
        auto slot = pool_.acquire(job.source_frame, plan->background());
        plan->paste(crop, slot.y(), slot.stride(), slot.uv(), slot.stride());
        return pool_.publish(std::move(slot), job.index);
    });
    return finished_.push(job.index, std::move(frame), stop_.get_token());
}

void LiveSession::render_batches() {
    const auto stop = stop_.get_token();
    if (batch_cadence_) {
        batch_cadence_->draw(stop);
    } else {
        batches_->draw(jobs_, stop);
    }
}

void LiveSession::render() {
    if (cadence_) {
        cadence_->work(stop_.get_token(),
                       [this](const DrivingFrame& job, std::span<const float> crop) {
                           return finish_frame(job, crop);
                       });
        return;
    }
    const auto& manifest = engine_->manifest();
    auto& device = *engine_->device;
    const auto stream = device.make_stream();
    warp::WarpStage warp(manifest.graph(pack::role::kWarp), device, *engine_->warp,
                         avatar_->sources());
    decode::DecodeStage decoder(manifest.graph(pack::role::kDecoder), device, *engine_->decoder,
                                avatar_->sources(), warp.outputs());
    const auto stop = stop_.get_token();
    while (const auto job = jobs_.pop(stop)) {
        timed(warp_meter_, [&] { warp.run(*job, *stream); });
        const auto crop = timed(decode_meter_, [&] { return decoder.run(*job, *stream); });
        if (!finish_frame(*job, crop)) return;
    }
}

void LiveSession::deliver() {
    const auto stop = stop_.get_token();
    while (auto frame = finished_.pop(stop)) {
        if (!timed(deliver_meter_, [&] { return callbacks_.on_frame(*frame); })) {
            cancel();
            return;
        }
        const std::lock_guard lock(progress_mutex_);
        ++delivered_;
        if (!first_frame_s_) first_frame_s_ = seconds_since(opened_);
    }
    const std::lock_guard lock(progress_mutex_);
    finished_s_ = seconds_since(opened_);
}

void LiveSession::push_audio(std::span<const float> samples) {
    if (closed_) throw Error(ErrorCode::bad_input, "push_audio after close");
    const auto bad = std::find_if(samples.begin(), samples.end(),
                                  [](float value) { return !std::isfinite(value); });
    if (bad != samples.end()) {
        throw Error(ErrorCode::bad_input, fmt::format("sample {} is not a finite number",
                                                      samples_pushed_ + (bad - samples.begin())));
    }
    const auto chunk_samples = static_cast<size_t>(engine_->manifest().audio.samples_per_frame);
    while (!samples.empty()) {
        const auto piece = samples.first(std::min(samples.size(), chunk_samples));
        AudioChunk chunk{.first_sample = samples_pushed_,
                         .samples = std::vector<float>(piece.begin(), piece.end())};
        samples_pushed_ += static_cast<int64_t>(piece.size());
        if (!audio_.push(std::move(chunk), stop_.get_token())) throw_failure();
        samples = samples.subspan(piece.size());
    }
}

void LiveSession::close() {
    closed_ = true;
    audio_.close();
}

void LiveSession::wait() {
    for (auto& thread : threads_) {
        if (thread.joinable()) thread.join();
    }
    const std::lock_guard lock(failure_mutex_);
    if (failure_) std::rethrow_exception(failure_);
    if (stop_.stop_requested()) throw Error(ErrorCode::cancelled, "the session was cancelled");
}

void LiveSession::cancel() noexcept {
    stop_.request_stop();
}

template <typename Body>
void LiveSession::guarded(const char* name, Body body) noexcept {
    try {
        body();
    } catch (Error& error) {
        if (error.stage().empty()) error.set_stage(name);
        fail(std::make_exception_ptr(error));
    } catch (const std::exception& exception) {
        Error error(ErrorCode::runtime, exception.what());
        error.set_stage(name);
        fail(std::make_exception_ptr(error));
    } catch (...) {  // a callback may throw anything
        fail(std::current_exception());
    }
}

void LiveSession::fail(std::exception_ptr error) noexcept {
    {
        const std::lock_guard lock(failure_mutex_);
        if (!failure_) failure_ = std::move(error);
    }
    stop_.request_stop();
}

void LiveSession::throw_failure() const {
    const std::lock_guard lock(failure_mutex_);
    if (failure_) std::rethrow_exception(failure_);
    throw Error(ErrorCode::cancelled, "the session was cancelled");
}

void LiveSession::note_pose(const PoseKinematics& given, const PoseKinematics& drawn) {
    const std::lock_guard lock(progress_mutex_);
    pose_given_ = given;
    pose_drawn_ = drawn;
}

SessionStats LiveSession::stats() const {
    SessionStats stats;
    {
        const std::lock_guard lock(progress_mutex_);
        stats.frames = delivered_;
        if (cadence_) stats.in_between_frames = cadence_->in_between();
        if (batch_cadence_) stats.in_between_frames = batch_cadence_->in_between();
        stats.time_to_first_frame_s = first_frame_s_;
        stats.pose_given = pose_given_;
        stats.pose_drawn = pose_drawn_;
        stats.wall_s = finished_s_.value_or(seconds_since(opened_));
    }
    for (const auto* meter : {&features_meter_, &motion_meter_, &warp_meter_, &decode_meter_,
                              &blend_meter_, &composite_meter_, &deliver_meter_}) {
        if (meter == &blend_meter_ && !has_cadence_) continue;
        stats.stages.push_back(meter->stats());
    }
    return stats;
}

}  // namespace newscaster::pipeline
