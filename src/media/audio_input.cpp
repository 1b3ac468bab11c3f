#include "media/audio_input.h"

#include <fmt/format.h>

extern "C" {
#include <libavutil/mathematics.h>
#include <libavutil/samplefmt.h>
}

#include <algorithm>
#include <cstring>
#include <new>

#include "newscaster/error.h"

namespace newscaster::media {

AudioInput::AudioInput(const std::string& path, const Log& log)
    : name_(display_name(path)),
      log_(log),
      input_(open_input(path, "a sound file")),
      packet_(make_packet()) {
    choose_stream();
    open_decoder();
}

std::string AudioInput::codec_name() const {
    return avcodec_get_name(stream_->codecpar->codec_id);
}

void AudioInput::choose_stream() {
    AVFormatContext& format = *input_.format;
    const int index = av_find_best_stream(&format, AVMEDIA_TYPE_AUDIO, -1, -1, nullptr, 0);
    if (index < 0) {
        throw Error(ErrorCode::bad_input,
                    fmt::format("{}: has no audio stream (container {}, {} other stream(s))", name_,
                                format.iformat->name, format.nb_streams));
    }
    for (unsigned i = 0; i < format.nb_streams; ++i) {
        format.streams[i]->discard =
            static_cast<int>(i) == index ? AVDISCARD_DEFAULT : AVDISCARD_ALL;
    }
    stream_ = format.streams[index];
}

void AudioInput::open_decoder() {
    const AVCodec* codec = avcodec_find_decoder(stream_->codecpar->codec_id);
    if (codec == nullptr) {
        throw Error(ErrorCode::bad_input,
                    fmt::format("{}: audio codec {} is not supported", name_, codec_name()));
    }
    decoder_.reset(avcodec_alloc_context3(codec));
    if (!decoder_) throw std::bad_alloc();
    int result = avcodec_parameters_to_context(decoder_.get(), stream_->codecpar);
    decoder_->pkt_timebase = stream_->time_base;  // libav cuts encoder delay only when it is known
    decoder_->thread_count = 1;
    if (result >= 0) result = avcodec_open2(decoder_.get(), codec, nullptr);
    if (result < 0) {
        throw Error(ErrorCode::bad_input, fmt::format("{}: audio codec {} cannot be decoded: {}",
                                                      name_, codec_name(), av_reason(result)));
    }
}

bool AudioInput::read_packet() {
    while (true) {
        av_packet_unref(packet_.get());
        const int result = av_read_frame(input_.format.get(), packet_.get());
        if (result >= 0) {
            if (packet_->stream_index == stream_->index) return true;
            continue;
        }
        const int io_error = input_.io->error;
        if (io_error < 0 && io_error != AVERROR_EOF) {
            throw Error(ErrorCode::io,
                        fmt::format("{}: read failed: {}", name_, av_reason(io_error)));
        }
        if (result != AVERROR_EOF) {
            log_(LogLevel::warning, "{}: damaged, read up to the fault: {}", name_,
                 av_reason(result));
        }
        return false;
    }
}

std::optional<AudioStep> AudioInput::next() {
    if (ended_) return std::nullopt;
    AudioStep step;
    if (read_packet()) {
        step.packet = share(*packet_);
        decode(packet_.get(), step);
    } else {
        ended_ = true;
        decode(nullptr, step);
    }
    return step;
}

void AudioInput::decode(const AVPacket* packet, AudioStep& step) {
    const int result = avcodec_send_packet(decoder_.get(), packet);
    if (result == AVERROR(ENOMEM)) throw std::bad_alloc();
    const size_t before = step.frames.size();
    if (result >= 0) receive(step);
    if (result < 0 && packet != nullptr && step.frames.size() == before) {
        replace_by_silence(*packet, step);
    }
}

void AudioInput::receive(AudioStep& step) {
    while (true) {
        AvFramePtr frame = make_frame();
        const int result = avcodec_receive_frame(decoder_.get(), frame.get());
        if (result == AVERROR(EAGAIN) || result == AVERROR_EOF) return;
        if (result < 0) {
            if (step.packet) replace_by_silence(*step.packet, step);
            return;
        }
        check_format(*frame);
        cut_at_stream_end(*frame);
        if (frame->nb_samples <= 0) continue;
        samples_ += frame->nb_samples;
        step.frames.emplace_back(frame.release(), AvDeleter{});
    }
}

void AudioInput::replace_by_silence(const AVPacket& packet, AudioStep& step) {
    if (damaged_packets_++ == 0) {
        log_(LogLevel::warning, "{}: damaged {} data is replaced by silence", name_, codec_name());
    }
    if (!first_) return;  // nothing was heard yet; the sound starts at its first good packet
    const int64_t samples =
        av_rescale_q(packet.duration, stream_->time_base, AVRational{1, first_->sample_rate});
    if (samples <= 0 || samples > first_->sample_rate) return;
    AvFramePtr frame = make_frame();
    frame->format = first_->format;
    frame->sample_rate = first_->sample_rate;
    frame->nb_samples = static_cast<int>(samples);
    if (av_channel_layout_copy(&frame->ch_layout, &first_->ch_layout) < 0 ||
        av_frame_get_buffer(frame.get(), 0) < 0) {
        throw std::bad_alloc();
    }
    av_samples_set_silence(frame->extended_data, 0, frame->nb_samples, frame->ch_layout.nb_channels,
                           static_cast<AVSampleFormat>(frame->format));
    samples_ += samples;
    step.frames.emplace_back(frame.release(), AvDeleter{});
}

void AudioInput::check_format(const AVFrame& frame) {
    if (!first_) {
        if (frame.sample_rate <= 0 || frame.ch_layout.nb_channels <= 0) {
            throw Error(ErrorCode::bad_input,
                        fmt::format("{}: the sound has {} Hz and {} channels", name_,
                                    frame.sample_rate, frame.ch_layout.nb_channels));
        }
        first_ = make_frame();
        if (av_channel_layout_copy(&first_->ch_layout, &frame.ch_layout) < 0) {
            throw std::bad_alloc();
        }
        first_->format = frame.format;
        first_->sample_rate = frame.sample_rate;
        return;
    }
    if (frame.sample_rate == first_->sample_rate &&
        frame.ch_layout.nb_channels == first_->ch_layout.nb_channels) {
        return;
    }
    throw Error(
        ErrorCode::bad_input,
        fmt::format("{}: the sound changes at {:.3f} s from {} Hz, {} channel(s) to {} Hz, "
                    "{} channel(s); one format is wanted",
                    name_, static_cast<double>(samples_) / first_->sample_rate, first_->sample_rate,
                    first_->ch_layout.nb_channels, frame.sample_rate, frame.ch_layout.nb_channels));
}

void AudioInput::cut_at_stream_end(AVFrame& frame) {
    // MP4 tells the padding of the last packet only through the packet's shorter duration, which
    // libav's decoders do not apply. Other containers either cut it themselves or do not know it.
    if (std::strstr(input_.format->iformat->name, "mp4") == nullptr) return;
    if (frame.pkt_duration <= 0) return;
    const int64_t stated =
        av_rescale_q(frame.pkt_duration, stream_->time_base, AVRational{1, frame.sample_rate});
    if (stated > 0 && stated < frame.nb_samples) frame.nb_samples = static_cast<int>(stated);
}

}  // namespace newscaster::media
