// Mix-down of speech to mono that never cancels. Private to this room.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace newscaster::media {

// Plain mean of the channels, except where the mean is much weaker than the loudest channel
// (antiphase stereo, speech on one channel of several): there the loudest channel alone. The
// decision is taken per block of 20 ms from smoothed energies, with hysteresis, and changes are
// cross-faded over one block. Causal and deterministic; how the input is cut into push() calls
// makes no difference. Sound of one channel passes bit for bit. Not thread-safe.
class ChannelMixer {
  public:
    // channels >= 1, sample_rate_hz >= 1.
    ChannelMixer(int channels, int sample_rate_hz);

    // interleaved: whole sample frames in [-1, 1] (larger finite values allowed). Appends what
    // is ready to mono; up to one block is held back.
    void push(std::span<const float> interleaved, std::vector<float>& mono);

    // Appends the rest. Afterwards as many samples came out as went in per channel.
    void finish(std::vector<float>& mono);

  private:
    void mix_block(std::span<const float> block, std::vector<float>& mono);
    void update_energies(std::span<const float> block);
    // True when another channel took over within this block: it is followed, energies start anew.
    bool notice_turn(const std::vector<double>& squares, double per_frame);
    void choose_target();

    static constexpr int kMean = -1;  // target_: the mean; else the channel followed

    size_t channels_;
    size_t block_frames_;
    std::vector<float> pending_;    // interleaved, less than one block
    std::vector<double> energies_;  // smoothed mean squares per channel
    double mean_energy_ = 0.0;      // smoothed mean square of the mean
    std::vector<double> weights_;   // at the end of the last block
    int target_ = kMean;
    bool started_ = false;  // a block that is not silent was seen
};

}  // namespace newscaster::media
