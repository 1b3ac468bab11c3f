// Features -> motion: condition rows, DDIM sampling of overlapping windows, fusion, clip,
// smoothing.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/stage_types.h"
#include "device/device.h"
#include "motion/condition_rows.h"
#include "motion/control_track.h"
#include "pack/pack.h"

namespace newscaster::motion {

struct MotionOptions {
    std::optional<int64_t> steps{};  // DDIM steps; default: the manifest's
    uint64_t seed = 0;
    ControlTrack controls{};
    AvatarConditions avatar{};
    std::vector<float> source_motion{};  // of the first source frame; where the pack starts from it
};

// Streams feature blocks into motion blocks. Deterministic for (features, options). The rows do not
// depend on how the features were split. Use from one thread at a time.
class MotionGenerator {
  public:
    // silence_rows: one or more feature rows of digital silence, flat. Online lead-in takes them in
    // turn, the padding of the last window takes the first. Throws Error(bad_input) for options out
    // of range.
    MotionGenerator(const pack::Pack& pack, device::Device& device, device::Graph& graph,
                    const MotionOptions& options, std::vector<float> silence_rows);
    ~MotionGenerator();

    // Adds features; returns the motion rows that are final (fused, denormalised, clipped,
    // smoothed), in order.
    std::vector<MotionBlock> push(const FeatureBlock& features);

    // No more features: returns the rest, so that rows out == feature rows in.
    std::vector<MotionBlock> finish();

    // Motion that relative driving starts from where that is not the first frame given out: the
    // first lead-in frame of online fusion. Empty otherwise, and before the first rows.
    [[nodiscard]] std::vector<float> reference_row() const;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace newscaster::motion
