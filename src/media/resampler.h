// Streaming sample rate conversion (libsoxr) with exact length and no shift in time. Private to
// media and encode.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

struct soxr;

namespace newscaster::media {

// Output sample j lies at j / to_hz seconds of the input. Equal rates pass bit for bit.
// Not thread-safe.
class Resampler {
  public:
    // Rates > 0 in Hz, channels >= 1. Throws Error(runtime) when the conversion cannot be set up.
    Resampler(int64_t from_hz, int64_t to_hz, int channels = 1);

    // interleaved: whole sample frames. Appends what is ready.
    void push(std::span<const float> interleaved, std::vector<float>& out);

    // Appends the rest; then ceil(frames in * to_hz / from_hz) frames came out in all.
    void finish(std::vector<float>& out);

  private:
    struct Deleter {
        void operator()(soxr* p) const;
    };
    void process(std::span<const float> interleaved, std::vector<float>& out);
    void drain(std::vector<float>& out);

    int64_t from_hz_;
    int64_t to_hz_;
    size_t channels_;
    int64_t frames_in_ = 0;
    int64_t frames_out_ = 0;
    std::unique_ptr<soxr, Deleter> soxr_;  // null: equal rates
};

}  // namespace newscaster::media
