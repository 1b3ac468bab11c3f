// Decoded sound of any libav sample format -> interleaved float. Private to media and encode.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

struct AVFrame;

namespace newscaster::media {

// Appends nb_samples * channels values, full scale = [-1, 1]. NaN and infinity stay what they
// are; finite doubles beyond float's range are limited to it. Throws Error(bad_input) naming a
// sample format that is not plain PCM.
void append_interleaved(const AVFrame& frame, std::vector<float>& samples);

// Index of the first NaN or infinite value.
[[nodiscard]] std::optional<size_t> first_not_finite(std::span<const float> samples);

}  // namespace newscaster::media
