#include "newscaster/types.h"

#include "newscaster/error.h"

namespace newscaster {

int64_t frames_covering(int64_t samples, int64_t sample_rate_hz, Rational fps) {
    if (samples < 0 || sample_rate_hz <= 0 || fps.num <= 0 || fps.den <= 0) {
        throw Error(ErrorCode::runtime, "frames_covering: counts and rates must be positive");
    }
    // Whole periods of rate*den samples are num frames each; only the rest needs the product, so
    // nothing leaves 64 bits.
    const int64_t unit = sample_rate_hz * fps.den;
    return samples / unit * fps.num + (samples % unit * fps.num + unit - 1) / unit;
}

}  // namespace newscaster
