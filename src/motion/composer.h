// Motion + avatar -> driving keypoints: x_d = s_s s_d (x_c R + delta) + (t_s + t_d) with
// R = (Rz Ry Rx)^T on row vectors; docs/motion.md defines every symbol.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/stage_types.h"
#include "pack/pack.h"

namespace newscaster::motion {

// Per source frame, what the composer needs of an avatar.
struct SourcePose {
    std::vector<float> canonical_keypoints;  // [K*3]
    std::vector<float> motion;               // source motion vector, manifest layout
};

// Stateless after construction; thread-safe.
class Composer {
  public:
    // Throws Error(bad_pack) when the layout, the expression basis or a source's sizes do not fit.
    Composer(const pack::Pack& pack, std::vector<SourcePose> sources);

    // The same without a pack on disk. basis: [channels, K*3] of the blendshapes span; empty when
    // the layout has none.
    Composer(const pack::Manifest& manifest, std::vector<float> basis,
             std::vector<SourcePose> sources);

    // Keypoints [K*3] of `motion` (manifest layout) applied to source frame `source`: x right,
    // y down, z into the picture, crop = [-1, 1].
    [[nodiscard]] std::vector<float> driving_keypoints(std::span<const float> motion,
                                                       int64_t source) const;

  private:
    pack::MotionSpec spec_;
    size_t keypoints_;
    std::vector<float> basis_;
    std::vector<SourcePose> sources_;
};

}  // namespace newscaster::motion
