#include "newscaster/render.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <mutex>
#include <utility>

#include "encode/video_writer.h"
#include "media/audio_source.h"
#include "motion/cadence_export.h"
#include "motion/control_track.h"
#include "motion/diffusion_schedule.h"
#include "motion/motion_export.h"
#include "pack/pack.h"
#include "pipeline/loaded_avatar.h"
#include "pipeline/stage_meter.h"

namespace newscaster {

namespace {

namespace fs = std::filesystem;
using encode::AudioCarry;
using pipeline::Clock;
using pipeline::StageMeter;

constexpr double kMaxCrf = 51.0;

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

// Runs `work`; its errors carry the stage's name.
template <typename Work>
auto in_stage(const char* name, Work work) {
    try {
        return work();
    } catch (Error& error) {
        if (error.stage().empty()) error.set_stage(name);
        throw;
    }
}

bool same_file(const fs::path& a, const fs::path& b) {
    std::error_code ignored;
    return fs::equivalent(a, b, ignored);
}

void check_options(const RenderJob& job) {
    if (!(job.crf >= 0.0 && job.crf <= kMaxCrf)) {
        throw Error(ErrorCode::bad_input, fmt::format("crf: found {}, wanted 0 to 51", job.crf));
    }
    if (!(job.max_audio_s >= 0.0 && std::isfinite(job.max_audio_s))) {
        throw Error(
            ErrorCode::bad_input,
            fmt::format("seconds of audio: found {}, wanted 0 (all) or more", job.max_audio_s));
    }
    if (job.audio.empty()) throw Error(ErrorCode::bad_input, "no audio given");
    if (job.output.empty()) throw Error(ErrorCode::bad_input, "no output given");
    if (job.output != "-" && job.audio != "-" && same_file(job.audio, job.output)) {
        throw Error(ErrorCode::bad_input,
                    fmt::format("{}: the output would replace the input", job.output));
    }
}

media::AudioSourceOptions source_options(const RenderJob& job, int64_t rate_hz) {
    media::AudioSourceOptions options;
    options.analysis_rate_hz = rate_hz;
    options.keep_packets = true;
    options.keep_frames = true;
    options.log = Log(job.log);
    return options;
}

// The original sound on its way from the reader to the writer, paced by the video so that the order
// in the file does not depend on thread timing.
class SoundLane {
  public:
    SoundLane(encode::VideoWriter& writer, AudioCarry carry) : writer_(writer), carry_(carry) {}

    // position: analysis samples read before this piece.
    void add(int64_t position, media::AudioRead& piece) {
        if (carry_ == AudioCarry::none) return;
        const std::lock_guard lock(mutex_);
        pieces_.push_back({position, std::move(piece.packets), std::move(piece.frames)});
    }

    // Writes what starts before `end` (analysis samples).
    void write_until(int64_t end) {
        while (true) {
            Piece piece;
            {
                const std::lock_guard lock(mutex_);
                if (pieces_.empty() || pieces_.front().position >= end) return;
                piece = std::move(pieces_.front());
                pieces_.pop_front();
            }
            if (carry_ == AudioCarry::copy) {
                for (const auto& packet : piece.packets) writer_.write_audio_packet(packet);
            } else {
                for (const auto& frame : piece.frames) writer_.write_audio_frame(frame);
            }
        }
    }

  private:
    struct Piece {
        int64_t position = 0;
        std::vector<std::shared_ptr<AVPacket>> packets;
        std::vector<std::shared_ptr<AVFrame>> frames;
    };

    encode::VideoWriter& writer_;
    const AudioCarry carry_;
    std::mutex mutex_;
    std::deque<Piece> pieces_;
};

std::string_view name_of(AudioCarry carry) {
    switch (carry) {
        case AudioCarry::copy:
            return "copy";
        case AudioCarry::aac:
            return "aac";
        case AudioCarry::none:
            break;
    }
    return "none";
}

// One offline render from open to rename.
class Rendering {
  public:
    Rendering(const Engine& engine, const AvatarPtr& avatar, const RenderJob& job)
        : engine_(engine),
          avatar_(avatar),
          job_(job),
          started_(Clock::now()),
          media_meter_("media", started_),
          encode_meter_("encode", started_) {
        check_options(job);
        source_ = in_stage("media", [&] {
            return media::AudioSource::open(job.audio,
                                            source_options(job, engine.info().sample_rate_hz));
        });
        in_stage("encode", [&] { open_writer(); });
        if (!job.export_motion.empty()) {
            exporter_ =
                motion::MotionExporter::open(job.export_motion, pipeline::manifest_of(*avatar));
        }
        if (!job.cadence_plan.empty()) {
            plan_ = std::make_unique<motion::CadenceExporter>(job.cadence_plan, job.session.cadence,
                                                              engine.info().fps);
        }
    }

    RenderReport run(const std::function<bool(const RenderProgress&)>& progress) {
        std::optional<int64_t> total;
        if (const auto duration_s = source_->format().duration_s) {
            const double spoken_s =
                job_.max_audio_s > 0.0 ? std::min(*duration_s, job_.max_audio_s) : *duration_s;
            total = static_cast<int64_t>(std::ceil(spoken_s * engine_.info().fps.to_double()));
        }
        SessionCallbacks callbacks;
        callbacks.on_frame = [&](const VideoFramePtr& frame) {
            write_frame(frame);
            return !progress || progress({.frames = frame->index + 1, .total_frames = total});
        };
        if (exporter_) {
            callbacks.on_motion = [&](int64_t frame, std::span<const float> motion) {
                exporter_->write(frame, motion);
            };
        }
        if (plan_) {
            callbacks.on_cadence = [&](const CadenceFrame& frame) { plan_->write(frame); };
        }
        const auto session = engine_.open_session(avatar_, job_.session, std::move(callbacks));
        feed(*session);
        session->wait();
        in_stage("encode", [&] {
            const StageMeter::Scope scope(encode_meter_);
            lane_->write_until(samples_ + 1);
            writer_->finish();
        });
        if (exporter_) exporter_->finish();
        if (plan_) plan_->finish();
        return report(session->stats());
    }

  private:
    void open_writer() {
        encode::WriterOptions options;
        options.output = job_.output;
        options.container = encode::container_from(job_.format, job_.output);
        options.video = {.width = avatar_->width(),
                         .height = avatar_->height(),
                         .fps = engine_.info().fps,
                         .crf = job_.crf,
                         .preset = job_.preset,
                         .threads = engine_.info().threads,
                         .log = Log(job_.log)};
        carry_ = encode::choose_carry(options.container, source_->codec_parameters());
        options.carry = carry_;
        options.audio = {.parameters = &source_->codec_parameters(),
                         .packet_time_base = source_->packet_time_base()};
        writer_ = encode::open_writer(options);
        lane_ = std::make_unique<SoundLane>(*writer_, carry_);
    }

    void write_frame(const VideoFramePtr& frame) {
        in_stage("encode", [&] {
            const StageMeter::Scope scope(encode_meter_);
            const auto& info = engine_.info();
            const double end_s = static_cast<double>(frame->index + 1) / info.fps.to_double();
            lane_->write_until(
                static_cast<int64_t>(end_s * static_cast<double>(info.sample_rate_hz)));
            writer_->write_video(frame);
        });
        if (frame->index == 0) first_frame_s_ = seconds_since(started_);
    }

    // Analysis samples that are spoken at most.
    [[nodiscard]] int64_t most_samples() const {
        if (job_.max_audio_s <= 0.0) return std::numeric_limits<int64_t>::max();
        const double samples =
            job_.max_audio_s * static_cast<double>(engine_.info().sample_rate_hz);
        return static_cast<int64_t>(std::min(std::ceil(samples), 0x1p62));
    }

    // Reads the file into the session at the pace the session accepts it.
    void feed(Session& session) {
        const int64_t most = most_samples();
        while (samples_ < most) {
            std::optional<media::AudioRead> piece;
            {
                const StageMeter::Scope scope(media_meter_);
                piece = in_stage("media", [&] { return source_->read(); });
            }
            if (!piece) break;
            lane_->add(samples_, *piece);
            const auto left = static_cast<size_t>(most - samples_);
            if (piece->mono.size() > left) piece->mono.resize(left);
            session.push_audio(piece->mono);
            samples_ += static_cast<int64_t>(piece->mono.size());
        }
        session.close();
    }

    [[nodiscard]] RenderReport report(SessionStats stats) const {
        RenderReport report;
        report.frames = stats.frames;
        report.audio_s =
            static_cast<double>(source_->total_source_samples()) / source_->format().sample_rate_hz;
        if (job_.max_audio_s > 0.0) report.audio_s = std::min(report.audio_s, job_.max_audio_s);
        report.wall_s = seconds_since(started_);
        report.rtf = report.wall_s / report.audio_s;
        report.fps = static_cast<double>(report.frames) / report.wall_s;
        report.time_to_first_frame_s = first_frame_s_;
        report.audio_codec = source_->format().codec;
        report.audio_carry = name_of(carry_);
        stats.stages.insert(stats.stages.begin(), media_meter_.stats());
        stats.stages.back() = encode_meter_.stats();  // offline delivery is encoding
        report.session = std::move(stats);
        return report;
    }

    const Engine& engine_;
    const AvatarPtr& avatar_;
    const RenderJob& job_;
    const Clock::time_point started_;
    StageMeter media_meter_;
    StageMeter encode_meter_;
    std::unique_ptr<media::AudioSource> source_;
    AudioCarry carry_ = AudioCarry::none;
    std::unique_ptr<encode::VideoWriter> writer_;
    std::unique_ptr<SoundLane> lane_;
    std::unique_ptr<motion::MotionExporter> exporter_;
    std::unique_ptr<motion::CadenceExporter> plan_;
    int64_t samples_ = 0;  // analysis samples fed
    double first_frame_s_ = 0.0;
};

}  // namespace

RenderReport render_file(const Engine& engine, const AvatarPtr& avatar, const RenderJob& job,
                         const std::function<bool(const RenderProgress&)>& progress) {
    return Rendering(engine, avatar, job).run(progress);
}

void check_job(const RenderJob& job, const fs::path& pack_folder) {
    check_options(job);
    const auto container = encode::container_from(job.format, job.output);
    const auto pack = pack::Pack::open(pack_folder);
    const auto& manifest = pack.manifest();
    const motion::ControlTrack controls_fit(manifest, job.session.controls, job.session.emotion);
    const auto& diffusion = manifest.motion.diffusion;
    (void)motion::ddim_timesteps(diffusion, job.session.steps.value_or(diffusion.default_steps));
    if (job.audio != "-") {
        in_stage("media", [&] {
            return media::AudioSource::open(job.audio,
                                            source_options(job, manifest.audio.sample_rate_hz));
        });
    }
    in_stage("encode", [&] { encode::check_output(container, job.output); });
    if (!job.export_motion.empty()) {
        (void)motion::MotionExporter::open(job.export_motion, manifest);
    }
    check_cadence(job.session.cadence);
    if (!job.cadence_plan.empty()) {
        const motion::CadenceExporter writable(job.cadence_plan, job.session.cadence,
                                               manifest.frame_rate);
    }
}

}  // namespace newscaster
