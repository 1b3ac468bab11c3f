// Any bytes as a sound file: read to the end with the promises of AudioSource kept, or refused with
// Error(bad_input). libav itself is not instrumented; what is ours around it is.
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "media/audio_source.h"
#include "memory_file.h"
#include "newscaster/error.h"

namespace {

constexpr size_t kMaxBytes = 64U << 10U;
// Silence may stand for many damaged packets, and codecs reach high ratios: this is what one input
// may cost, not what is right.
constexpr size_t kMaxMonoSamples = 4U << 20U;

void read_all(newscaster::media::AudioSource& source, int64_t rate_hz) {
    const auto& format = source.format();
    if (format.sample_rate_hz <= 0 || format.channels <= 0) std::abort();
    size_t mono = 0;
    while (const auto piece = source.read()) {
        for (const float sample : piece->mono) {
            if (!(std::abs(sample) <= 1.0F)) std::abort();
        }
        mono += piece->mono.size();
        if (mono > kMaxMonoSamples) return;
    }
    const int64_t total = source.total_source_samples();
    const int64_t wanted = (total * rate_hz + format.sample_rate_hz - 1) / format.sample_rate_hz;
    if (total <= 0 || static_cast<int64_t>(mono) != wanted) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size > kMaxBytes) return 0;
    const newscaster::fuzz::MemoryFile file({data, size});
    newscaster::media::AudioSourceOptions options;
    options.keep_packets = true;
    options.keep_frames = true;
    try {
        const auto source = newscaster::media::AudioSource::open(file.path(), options);
        read_all(*source, options.analysis_rate_hz);
    } catch (const newscaster::Error& error) {
        if (error.code() != newscaster::ErrorCode::bad_input) std::abort();
    }
    return 0;
}
