#include "media/resampler.h"

#include <fmt/format.h>
#include <soxr.h>

#include <algorithm>

#include "newscaster/error.h"

namespace newscaster::media {

namespace {

constexpr size_t kOutputBlock = 4096;  // frames asked of soxr at once

[[noreturn]] void fail(int64_t from_hz, int64_t to_hz, const char* reason) {
    throw Error(ErrorCode::runtime,
                fmt::format("resampling from {} Hz to {} Hz failed: {}", from_hz, to_hz, reason));
}

}  // namespace

void Resampler::Deleter::operator()(soxr* p) const {
    soxr_delete(p);
}

Resampler::Resampler(int64_t from_hz, int64_t to_hz, int channels)
    : from_hz_(from_hz), to_hz_(to_hz), channels_(static_cast<size_t>(channels)) {
    if (from_hz <= 0 || to_hz <= 0 || channels <= 0) fail(from_hz, to_hz, "rates must be positive");
    if (from_hz == to_hz) return;
    soxr_error_t error = nullptr;
    const soxr_io_spec_t io = soxr_io_spec(SOXR_FLOAT32_I, SOXR_FLOAT32_I);
    const soxr_quality_spec_t quality = soxr_quality_spec(SOXR_HQ, 0);
    const soxr_runtime_spec_t runtime = soxr_runtime_spec(1);
    soxr_.reset(soxr_create(static_cast<double>(from_hz), static_cast<double>(to_hz),
                            static_cast<unsigned>(channels), &error, &io, &quality, &runtime));
    if (error != nullptr) fail(from_hz, to_hz, error);
}

void Resampler::push(std::span<const float> interleaved, std::vector<float>& out) {
    frames_in_ += static_cast<int64_t>(interleaved.size() / channels_);
    process(interleaved, out);
}

void Resampler::process(std::span<const float> interleaved, std::vector<float>& out) {
    if (!soxr_) {
        out.insert(out.end(), interleaved.begin(), interleaved.end());
        frames_out_ += static_cast<int64_t>(interleaved.size() / channels_);
        return;
    }
    const size_t frames = interleaved.size() / channels_;
    if (frames == 0) return;  // a null pointer would mean the end to soxr
    size_t taken = 0;
    size_t made = kOutputBlock;
    while (taken < frames || made == kOutputBlock) {
        const size_t start = out.size();
        out.resize(start + kOutputBlock * channels_);
        size_t used = 0;
        const soxr_error_t error =
            soxr_process(soxr_.get(), interleaved.data() + taken * channels_, frames - taken, &used,
                         out.data() + start, kOutputBlock, &made);
        out.resize(start + made * channels_);
        if (error != nullptr) fail(from_hz_, to_hz_, error);
        taken += used;
        frames_out_ += static_cast<int64_t>(made);
        if (used == 0 && made == 0) break;
    }
}

void Resampler::drain(std::vector<float>& out) {
    size_t made = kOutputBlock;
    while (made > 0) {
        const size_t start = out.size();
        out.resize(start + kOutputBlock * channels_);
        const soxr_error_t error =
            soxr_process(soxr_.get(), nullptr, 0, nullptr, out.data() + start, kOutputBlock, &made);
        out.resize(start + made * channels_);
        if (error != nullptr) fail(from_hz_, to_hz_, error);
        frames_out_ += static_cast<int64_t>(made);
    }
}

void Resampler::finish(std::vector<float>& out) {
    if (!soxr_) return;
    const int64_t wanted = (frames_in_ * to_hz_ + from_hz_ - 1) / from_hz_;
    // soxr rounds the length down or up; silence behind the end gives it enough to round, and the
    // excess is cut.
    const size_t excess = static_cast<size_t>(from_hz_ / to_hz_ + 2);
    process(std::vector<float>(excess * channels_, 0.0F), out);
    drain(out);
    const int64_t difference = wanted - frames_out_;
    const int64_t size =
        static_cast<int64_t>(out.size()) + difference * static_cast<int64_t>(channels_);
    out.resize(static_cast<size_t>(std::max<int64_t>(size, 0)), 0.0F);
    frames_out_ = wanted;
}

}  // namespace newscaster::media
