#include "encode/mux_writer.h"

#include <fmt/format.h>

extern "C" {
#include <libavutil/dict.h>
#include <libavutil/intreadwrite.h>
#include <libavutil/mathematics.h>
}

#include <algorithm>
#include <new>

#include "encode/frame_check.h"
#include "newscaster/error.h"

namespace newscaster::encode {

namespace {

// How far one stream may run ahead of the other before packets are written out of order instead
// of being kept in memory.
constexpr int64_t kMaxInterleaveSeconds = 30;

bool needs_global_header(const AVFormatContext& format) {
    return (format.oformat->flags & AVFMT_GLOBALHEADER) != 0;
}

// Samples that the decoder will throw away at the end of this packet.
int64_t discarded_at_end(const AVPacket& packet) {
    size_t size = 0;
    const uint8_t* data = av_packet_get_side_data(&packet, AV_PKT_DATA_SKIP_SAMPLES, &size);
    return data != nullptr && size >= 8 ? AV_RL32(data + 4) : 0;
}

}  // namespace

MuxWriter::MuxWriter(const WriterOptions& options)
    : file_(options.output),
      carry_(options.carry),
      width_(options.video.width),
      height_(options.video.height) {
    AVFormatContext* format = nullptr;
    const char* muxer = options.container == Container::mp4 ? "mp4" : "matroska";
    const int result = avformat_alloc_output_context2(&format, nullptr, muxer, file_.url().c_str());
    format_.reset(format);
    check(result, "opening the muxer");
    format->flags |= AVFMT_FLAG_BITEXACT | AVFMT_FLAG_CUSTOM_IO;
    format->max_interleave_delta = kMaxInterleaveSeconds * AV_TIME_BASE;
    format->pb = file_.avio();
    add_video_stream(options);
    if (carry_ != AudioCarry::none) add_audio_stream(options);
    write_header(options);
}

void MuxWriter::add_video_stream(const WriterOptions& options) {
    video_.emplace(options.video, needs_global_header(*format_));
    video_stream_ = avformat_new_stream(format_.get(), nullptr);
    if (video_stream_ == nullptr) throw std::bad_alloc();
    check(avcodec_parameters_from_context(video_stream_->codecpar, &video_->context()),
          "describing the video");
    video_stream_->time_base = video_->context().time_base;
    video_stream_->avg_frame_rate = video_->context().framerate;
    video_stream_->r_frame_rate = video_->context().framerate;
    video_stream_->sample_aspect_ratio = video_->context().sample_aspect_ratio;
}

void MuxWriter::add_audio_stream(const WriterOptions& options) {
    if (options.audio.parameters == nullptr) {
        throw Error(ErrorCode::runtime, "sound is to be carried but its format was not given");
    }
    audio_stream_ = avformat_new_stream(format_.get(), nullptr);
    if (audio_stream_ == nullptr) throw std::bad_alloc();
    if (carry_ == AudioCarry::aac) {
        audio_.emplace(*options.audio.parameters, needs_global_header(*format_));
        check(avcodec_parameters_from_context(audio_stream_->codecpar, &audio_->context()),
              "describing the sound");
    } else {
        check(avcodec_parameters_copy(audio_stream_->codecpar, options.audio.parameters),
              "describing the sound");
        audio_stream_->codecpar->codec_tag = 0;  // the source container's tag means nothing here
        packet_time_base_ = media::to_av(options.audio.packet_time_base);
        if (options.container == Container::mkv &&
            audio_stream_->codecpar->codec_id == AV_CODEC_ID_OPUS) {
            // For Opus the muxer states the delay as CodecDelay, which players subtract from the
            // blocks' times, but does not add it to them.
            copy_shift_ =
                av_rescale_q(audio_stream_->codecpar->initial_padding,
                             {1, audio_stream_->codecpar->sample_rate}, packet_time_base_);
        }
    }
    audio_stream_->time_base = {1, audio_stream_->codecpar->sample_rate};
}

void MuxWriter::write_header(const WriterOptions& options) {
    AVDictionary* settings = nullptr;
    const AVCodecParameters* sound = audio_stream_ != nullptr ? audio_stream_->codecpar : nullptr;
    if (options.container == Container::mp4) {
        // Edit lists count in the movie's time scale: the sound's rate keeps its length exact.
        if (sound != nullptr) av_dict_set_int(&settings, "movie_timescale", sound->sample_rate, 0);
        // delay_moov: the header is written with the first fragment, when the encoders' delays
        // are known, so that they go to edit lists instead of shifting the tracks.
        av_dict_set(&settings, "movflags",
                    file_.seekable() ? "+faststart"
                                     : "+frag_keyframe+empty_moov+delay_moov+default_base_moof",
                    0);
    }
    const int result = avformat_write_header(format_.get(), &settings);
    av_dict_free(&settings);
    check(result, "writing the header");
}

void MuxWriter::check(int result, const char* doing) const {
    file_.check();
    if (result >= 0) return;
    throw Error(ErrorCode::runtime,
                fmt::format("{}: {} failed: {}", file_.name(), doing, media::av_reason(result)));
}

void MuxWriter::write_packet(AVPacket& packet, AVRational time_base, const AVStream& stream) {
    av_packet_rescale_ts(&packet, time_base, stream.time_base);
    packet.stream_index = stream.index;
    packet.pos = -1;
    check(av_interleaved_write_frame(format_.get(), &packet), "writing");
}

void MuxWriter::write_video(const VideoFramePtr& frame) {
    check_frame(*frame, next_frame_, width_, height_);
    ++next_frame_;
    video_->encode(frame, [this](AVPacket& packet) {
        write_packet(packet, video_->context().time_base, *video_stream_);
    });
}

void MuxWriter::write_audio_packet(const std::shared_ptr<AVPacket>& packet) {
    if (carry_ != AudioCarry::copy) {
        throw Error(ErrorCode::runtime, "a sound packet was given to a writer that does not copy");
    }
    const std::shared_ptr<AVPacket> copy = media::share(*packet);
    copy->pts = copy->pts == AV_NOPTS_VALUE ? next_copy_pts_ : copy->pts + copy_shift_;
    copy->dts = copy->pts;  // sound is never reordered
    // Some demuxers shorten the last packet's duration by the padding, others only tell the
    // padding; a whole packet is as long as the longest before it.
    longest_copy_ = std::max(longest_copy_, copy->duration);
    if (const int64_t discarded = discarded_at_end(*copy); discarded > 0) {
        const int64_t cut =
            av_rescale_q(discarded, {1, audio_stream_->codecpar->sample_rate}, packet_time_base_);
        copy->duration = std::clamp<int64_t>(longest_copy_ - cut, 0, copy->duration);
    }
    next_copy_pts_ = copy->pts + copy->duration;
    write_packet(*copy, packet_time_base_, *audio_stream_);
}

void MuxWriter::write_audio_frame(const std::shared_ptr<AVFrame>& frame) {
    if (!audio_) {
        throw Error(ErrorCode::runtime, "sound was given to a writer that does not encode it");
    }
    audio_->encode(*frame, [this](AVPacket& packet) {
        write_packet(packet, audio_->context().time_base, *audio_stream_);
    });
}

void MuxWriter::finish() {
    video_->finish([this](AVPacket& packet) {
        write_packet(packet, video_->context().time_base, *video_stream_);
    });
    if (audio_) {
        audio_->finish([this](AVPacket& packet) {
            write_packet(packet, audio_->context().time_base, *audio_stream_);
        });
    }
    check(av_write_trailer(format_.get()), "completing the file");
    file_.commit();
}

}  // namespace newscaster::encode
