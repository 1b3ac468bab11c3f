// What the sound asks of the lips, frame by frame, from the audio encoder's phone logits.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace newscaster::sync {

// One value per frame.
struct SpeechTrack {
    std::vector<double> opening;   // expected opening of the lips, 0 (closed) .. 1
    std::vector<double> bilabial;  // probability of p, b or m
    std::vector<double> silence;   // probability of silence

    [[nodiscard]] size_t frames() const { return opening.size(); }
};

// Collects rows of phone logits. Use from one thread at a time.
class PhoneReader {
  public:
    // phones: what the columns stand for, "sil" or ARPAbet in lower case. `origin` names the pack
    // in messages. Throws Error(bad_pack) for a phone whose lips are not known, and when sil, p, b
    // or m is missing.
    PhoneReader(const std::vector<std::string>& phones, const std::string& origin);

    // Whole rows of finite logits. Throws Error(runtime) otherwise.
    void push(std::span<const float> logits);

    [[nodiscard]] const SpeechTrack& track() const { return track_; }

  private:
    std::vector<double> openings_;  // per column
    std::vector<double> bilabial_;  // per column, 0 or 1
    size_t silence_ = 0;            // column
    SpeechTrack track_;
};

}  // namespace newscaster::sync
