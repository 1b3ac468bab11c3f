#include "media/channel_mixer.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace newscaster::media {

namespace {

constexpr double kBlockSeconds = 0.020;
constexpr double kSmoothingSeconds = 0.200;  // about one syllable

// Energy of the mean against the loudest channel: equal channels give 1, unrelated ones of the
// same level 1/2, one silent channel of two 1/4. The limits sit between the last two.
constexpr double kLeaveMean = 0.35;
constexpr double kReturnToMean = 0.45;
// Another channel must be 3 dB louder before it is followed instead.
constexpr double kChannelChange = 2.0;
// Below this (-100 dBFS) a block says nothing about the channels.
constexpr double kSilence = 1e-10;
// A turn of speakers: within one block the followed channel falls this far (9 dB) behind one that
// is about as loud (-6 dB) as the followed one was. Smoothed energies would notice too late.
constexpr double kTurn = 8.0;
constexpr double kTurnLevel = 0.25;

}  // namespace

ChannelMixer::ChannelMixer(int channels, int sample_rate_hz)
    : channels_(static_cast<size_t>(channels)),
      block_frames_(
          std::max<size_t>(1, static_cast<size_t>(std::lround(kBlockSeconds * sample_rate_hz)))),
      energies_(channels_, 0.0),
      weights_(channels_, 1.0 / static_cast<double>(channels)) {}

void ChannelMixer::push(std::span<const float> interleaved, std::vector<float>& mono) {
    if (channels_ == 1) {
        // Float files may hold any finite value; the resampler would turn the largest into NaN.
        std::transform(interleaved.begin(), interleaved.end(), std::back_inserter(mono),
                       [](float value) { return std::clamp(value, -1.0F, 1.0F); });
        return;
    }
    const size_t block_size = block_frames_ * channels_;
    while (pending_.size() + interleaved.size() >= block_size) {
        if (pending_.empty()) {
            mix_block(interleaved.first(block_size), mono);
            interleaved = interleaved.subspan(block_size);
            continue;
        }
        const auto head = interleaved.first(block_size - pending_.size());
        pending_.insert(pending_.end(), head.begin(), head.end());
        interleaved = interleaved.subspan(head.size());
        mix_block(pending_, mono);
        pending_.clear();
    }
    pending_.insert(pending_.end(), interleaved.begin(), interleaved.end());
}

void ChannelMixer::finish(std::vector<float>& mono) {
    if (!pending_.empty()) mix_block(pending_, mono);
    pending_.clear();
}

void ChannelMixer::update_energies(std::span<const float> block) {
    const size_t frames = block.size() / channels_;
    std::vector<double> squares(channels_, 0.0);
    double mean_square = 0.0;
    for (size_t i = 0; i < frames; ++i) {
        double sum = 0.0;
        for (size_t c = 0; c < channels_; ++c) {
            const double value = block[i * channels_ + c];
            squares[c] += value * value;
            sum += value;
        }
        mean_square += sum * sum;
    }
    const double per_frame = 1.0 / static_cast<double>(frames);
    const bool anew = !started_ || notice_turn(squares, per_frame);
    const double rate = anew ? 1.0 : 1.0 - std::exp(-kBlockSeconds / kSmoothingSeconds);
    for (size_t c = 0; c < channels_; ++c) {
        energies_[c] += rate * (squares[c] * per_frame - energies_[c]);
    }
    mean_square *= per_frame / static_cast<double>(channels_ * channels_);
    mean_energy_ += rate * (mean_square - mean_energy_);
}

bool ChannelMixer::notice_turn(const std::vector<double>& squares, double per_frame) {
    if (target_ == kMean) return false;
    const auto loudest = std::max_element(squares.begin(), squares.end());
    if (*loudest < kTurn * squares[target_]) return false;
    if (*loudest * per_frame < kTurnLevel * energies_[target_]) return false;
    target_ = static_cast<int>(loudest - squares.begin());
    return true;
}

void ChannelMixer::choose_target() {
    const auto loudest = std::max_element(energies_.begin(), energies_.end());
    if (*loudest < kSilence) return;
    const double ratio = mean_energy_ / *loudest;
    if (target_ != kMean && ratio > kReturnToMean) target_ = kMean;
    const bool follow_loudest =
        target_ == kMean ? ratio < kLeaveMean : *loudest > kChannelChange * energies_[target_];
    if (follow_loudest) target_ = static_cast<int>(loudest - energies_.begin());
}

void ChannelMixer::mix_block(std::span<const float> block, std::vector<float>& mono) {
    update_energies(block);
    choose_target();
    std::vector<double> wanted(channels_, 1.0 / static_cast<double>(channels_));
    if (target_ != kMean) {
        std::fill(wanted.begin(), wanted.end(), 0.0);
        wanted[static_cast<size_t>(target_)] = 1.0;
    }
    const double loudest = *std::max_element(energies_.begin(), energies_.end());
    if (!started_ && loudest >= kSilence) {
        started_ = true;
        weights_ = wanted;  // nothing was heard yet, so there is nothing to fade from
    }
    const size_t frames = block.size() / channels_;
    const bool steady = weights_ == wanted;
    for (size_t i = 0; i < frames; ++i) {
        const double fade = steady ? 1.0 : static_cast<double>(i + 1) / static_cast<double>(frames);
        double sum = 0.0;
        for (size_t c = 0; c < channels_; ++c) {
            const double weight = weights_[c] + fade * (wanted[c] - weights_[c]);
            sum += weight * static_cast<double>(block[i * channels_ + c]);
        }
        mono.push_back(static_cast<float>(std::clamp(sum, -1.0, 1.0)));
    }
    weights_ = wanted;
}

}  // namespace newscaster::media
