// Motion + avatar -> driving keypoints. x_d = s_s*s_d * (x_c R(pitch,yaw,roll) + delta) + (t_s +
// t_d) with R = (Rz Ry Rx)^T on row vectors; see docs/motion.md.
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
    Composer(const pack::Pack& pack, std::vector<SourcePose> sources);

    // Keypoints [K*3] of `motion` (manifest layout) applied to source frame `source`.
    [[nodiscard]] std::vector<float> driving_keypoints(std::span<const float> motion,
                                                       int64_t source) const;

  private:
    const pack::Manifest& manifest_;
    std::vector<float> basis_;  // [channels, K*3]
    std::vector<SourcePose> sources_;
};

}  // namespace newscaster::motion
