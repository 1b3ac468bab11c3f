// Motion + avatar -> driving keypoints: x_d = s (x_c R + delta) + t with R = (Rz Ry Rx)^T on row
// vectors; docs/motion.md defines every symbol.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "core/stage_types.h"
#include "motion/pose_angles.h"
#include "motion/rotation.h"
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

    // Keypoints [K*3] of `motion` (manifest layout) on source frame `source`: x right, y down, z
    // into the picture, crop = [-1, 1]. Scale, pose and translation add to the source's, unless
    // the pack has a composition section: then `motion` is mixed with the source's already.
    [[nodiscard]] std::vector<float> driving_keypoints(std::span<const float> motion,
                                                       int64_t source) const;
    [[nodiscard]] std::vector<float> driving_keypoints(const PosedRow& motion,
                                                       int64_t source) const;

    // The face without pose, scale and translation, [K*3]: canonical keypoints + expression.
    [[nodiscard]] std::vector<float> shape(std::span<const float> motion, int64_t source) const;

    // Rotation of the head in `motion` on source frame `source`, as the driving keypoints have it.
    [[nodiscard]] Quaternion rotation(const PosedRow& motion, int64_t source) const;

    // Keypoints of a source frame at its own motion.
    [[nodiscard]] std::vector<float> source_keypoints(int64_t source) const;

    [[nodiscard]] const std::vector<SourcePose>& sources() const { return sources_; }

  private:
    [[nodiscard]] std::array<double, 3> angles(const PosedRow& motion, int64_t source) const;
    [[nodiscard]] std::vector<double> expression(std::span<const float> motion) const;

    pack::MotionSpec spec_;
    size_t keypoints_;
    std::vector<float> basis_;
    std::vector<SourcePose> sources_;
};

}  // namespace newscaster::motion
