// Audio features: mono samples in, one feature row per video frame out, streamed through the pack's
// audio_encoder graph with the manifest's chunk geometry.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/stage_types.h"
#include "device/device.h"
#include "pack/pack.h"

namespace newscaster::features {

// Turns a sample stream into feature blocks. Frame i reads past/future context around samples
// [i, i+1) * samples_per_frame; before the start and after the end there are zeros. Any split of
// the input into push() calls gives the same rows. Use from one thread at a time.
class FeatureStreamer {
  public:
    // graph: role audio_encoder; shared between streamers.
    FeatureStreamer(const pack::Manifest& manifest, device::Device& device, device::Graph& graph);
    ~FeatureStreamer();

    // Appends samples and returns every block that became complete, in order.
    std::vector<FeatureBlock> push(std::span<const float> samples);

    // Ends the stream at exactly `total_frames` rows (>= rows already produced is not required to
    // be a multiple of the chunk). Missing samples count as zeros.
    std::vector<FeatureBlock> finish(int64_t total_frames);

    [[nodiscard]] int64_t frames_produced() const;

    // Rows that a chunk of digital silence gives in the steady state, flat [present_frames,
    // feature_dims]; motion windows that reach beyond the speech are filled with them.
    [[nodiscard]] std::vector<float> silence_rows();

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace newscaster::features
