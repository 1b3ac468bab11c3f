#include "media/audio_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

#include "media/audio_input.h"
#include "media/channel_mixer.h"
#include "media/resampler.h"
#include "media/sample_convert.h"
#include "newscaster/error.h"

namespace newscaster::media {

namespace {

constexpr int64_t kReadsPerSecond = 50;  // a read() covers at least 20 ms unless the sound ends

// Counts samples and refuses values no stage can work with.
class SampleGuard {
  public:
    explicit SampleGuard(std::string name) : name_(std::move(name)) {}

    void check(std::span<const float> interleaved, const AVFrame& frame) {
        const auto channels = static_cast<size_t>(frame.ch_layout.nb_channels);
        if (const auto bad = first_not_finite(interleaved)) {
            const double second =
                static_cast<double>(samples_ + static_cast<int64_t>(*bad / channels)) /
                frame.sample_rate;
            throw Error(ErrorCode::bad_input,
                        fmt::format("{}: sample at {:.6f} s is {}, finite values are wanted", name_,
                                    second, interleaved[*bad]));
        }
        samples_ += frame.nb_samples;
    }

    [[nodiscard]] int64_t samples() const { return samples_; }

  private:
    std::string name_;
    int64_t samples_ = 0;
};

bool holds_raw_floats(const AVCodecParameters& parameters) {
    switch (parameters.codec_id) {
        case AV_CODEC_ID_PCM_F16LE:
        case AV_CODEC_ID_PCM_F24LE:
        case AV_CODEC_ID_PCM_F32LE:
        case AV_CODEC_ID_PCM_F32BE:
        case AV_CODEC_ID_PCM_F64LE:
        case AV_CODEC_ID_PCM_F64BE:
            return true;
        default:
            return false;
    }
}

// Only uncompressed floats can carry NaN by themselves; reading them is cheap, so a file is
// refused before any work was spent on it.
void scan_raw_floats(const std::string& path) {
    AudioInput input(path, Log());
    SampleGuard guard(input.name());
    std::vector<float> samples;
    while (auto step = input.next()) {
        for (const auto& frame : step->frames) {
            samples.clear();
            append_interleaved(*frame, samples);
            guard.check(samples, *frame);
        }
    }
}

class LibavAudioSource final : public AudioSource {
  public:
    LibavAudioSource(const std::string& path, const AudioSourceOptions& options)
        : options_(options), input_(path, options.log), guard_(input_.name()) {
        std::error_code ignored;
        if (path != "-" && holds_raw_floats(*input_.stream().codecpar) &&
            std::filesystem::is_regular_file(path, ignored)) {
            scan_raw_floats(path);
        }
        read_first_frame();
        const AVFrame& first = first_frame();
        describe(first);
        if (options_.analysis_rate_hz <= 0) {
            throw Error(ErrorCode::bad_input, fmt::format("analysis rate {} Hz, > 0 is wanted",
                                                          options_.analysis_rate_hz));
        }
        mixer_.emplace(first.ch_layout.nb_channels, first.sample_rate);
        resampler_.emplace(first.sample_rate, options_.analysis_rate_hz);
        find_origin(first);
    }

    [[nodiscard]] const AudioFormat& format() const override { return format_; }
    [[nodiscard]] const AVCodecParameters& codec_parameters() const override {
        return *input_.stream().codecpar;
    }
    [[nodiscard]] Rational packet_time_base() const override {
        return from_av(input_.stream().time_base);
    }
    [[nodiscard]] int64_t total_source_samples() const override { return guard_.samples(); }

    std::optional<AudioRead> read() override {
        if (ended_) return std::nullopt;
        AudioRead result;
        const int64_t start = guard_.samples();
        const int64_t enough = (format_.sample_rate_hz + kReadsPerSecond - 1) / kReadsPerSecond;
        while (guard_.samples() - start < enough) {
            auto step = next_step();
            if (!step) {
                finish(result);
                break;
            }
            consume(*step, result);
        }
        return result;
    }

  private:
    // Decoding the first frame tells the true rate and channels (HE-AAC) and that there is sound.
    void read_first_frame() {
        while (auto step = input_.next()) {
            const bool found = !step->frames.empty();
            waiting_.push_back(std::move(*step));
            if (found) return;
        }
        if (input_.damaged_packets() > 0) {
            throw Error(ErrorCode::bad_input, fmt::format("{}: its {} data cannot be decoded",
                                                          input_.name(), input_.codec_name()));
        }
        throw Error(ErrorCode::bad_input,
                    fmt::format("{}: the audio stream holds no samples", input_.name()));
    }

    [[nodiscard]] const AVFrame& first_frame() const { return *waiting_.back().frames.front(); }

    void describe(const AVFrame& first) {
        format_.container = input_.container().iformat->name;
        format_.codec = input_.codec_name();
        format_.sample_rate_hz = first.sample_rate;
        format_.channels = first.ch_layout.nb_channels;
        const AVStream& stream = input_.stream();
        if (stream.duration != AV_NOPTS_VALUE && stream.duration > 0) {
            format_.duration_s = static_cast<double>(stream.duration) * av_q2d(stream.time_base);
        } else if (input_.container().duration != AV_NOPTS_VALUE &&
                   input_.container().duration > 0) {
            format_.duration_s = static_cast<double>(input_.container().duration) / AV_TIME_BASE;
        }
    }

    void find_origin(const AVFrame& first) {
        const int64_t pts = first.best_effort_timestamp;
        if (pts != AV_NOPTS_VALUE) origin_ = pts;
    }

    std::optional<AudioStep> next_step() {
        if (waiting_.empty()) return input_.next();
        AudioStep step = std::move(waiting_.front());
        waiting_.pop_front();
        return step;
    }

    void consume(AudioStep& step, AudioRead& result) {
        for (auto& frame : step.frames) {
            interleaved_.clear();
            append_interleaved(*frame, interleaved_);
            guard_.check(interleaved_, *frame);
            mixed_.clear();
            mixer_->push(interleaved_, mixed_);
            resample(result.mono);
            if (options_.keep_frames) result.frames.push_back(std::move(frame));
        }
        if (options_.keep_packets && step.packet) {
            if (step.packet->pts != AV_NOPTS_VALUE) step.packet->pts -= origin_;
            if (step.packet->dts != AV_NOPTS_VALUE) step.packet->dts -= origin_;
            result.packets.push_back(std::move(step.packet));
        }
    }

    void finish(AudioRead& result) {
        mixed_.clear();
        mixer_->finish(mixed_);
        resample(result.mono);
        const size_t start = result.mono.size();
        resampler_->finish(result.mono);
        limit(result.mono, start);
        ended_ = true;
    }

    void resample(std::vector<float>& mono) {
        const size_t start = mono.size();
        resampler_->push(mixed_, mono);
        limit(mono, start);
    }

    // The filter of the resampler overshoots at steep edges of loud sound.
    static void limit(std::vector<float>& mono, size_t start) {
        for (size_t i = start; i < mono.size(); ++i) mono[i] = std::clamp(mono[i], -1.0F, 1.0F);
    }

    AudioSourceOptions options_;
    AudioInput input_;
    SampleGuard guard_;
    AudioFormat format_;
    std::deque<AudioStep> waiting_;  // read while opening
    std::optional<ChannelMixer> mixer_;
    std::optional<Resampler> resampler_;
    std::vector<float> interleaved_;
    std::vector<float> mixed_;
    int64_t origin_ = 0;  // time stamp of the first audible sample, in the stream's time base
    bool ended_ = false;
};

}  // namespace

std::unique_ptr<AudioSource> AudioSource::open(const std::string& path,
                                               const AudioSourceOptions& options) {
    return std::make_unique<LibavAudioSource>(path, options);
}

std::vector<float> read_mono(const std::string& path, int64_t rate_hz) {
    AudioSourceOptions options;
    options.analysis_rate_hz = rate_hz;
    const auto source = AudioSource::open(path, options);
    std::vector<float> mono;
    while (auto piece = source->read()) {
        mono.insert(mono.end(), piece->mono.begin(), piece->mono.end());
    }
    return mono;
}

}  // namespace newscaster::media
