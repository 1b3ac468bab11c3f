#include "motion/composer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <utility>

#include "newscaster/error.h"

namespace newscaster::motion {

namespace {

using Matrix = std::array<double, 9>;  // row-major 3x3

double radians(double degrees) {
    return degrees * std::numbers::pi / 180.0;
}

// (Rz Ry Rx)^T, to be applied to row vectors: x' = x R.
Matrix matrix_of(double pitch_deg, double yaw_deg, double roll_deg) {
    const double cp = std::cos(radians(pitch_deg));
    const double sp = std::sin(radians(pitch_deg));
    const double cy = std::cos(radians(yaw_deg));
    const double sy = std::sin(radians(yaw_deg));
    const double cr = std::cos(radians(roll_deg));
    const double sr = std::sin(radians(roll_deg));
    return {cr * cy,
            sr * cy,
            -sy,  //
            cr * sy * sp - sr * cp,
            sr * sy * sp + cr * cp,
            cy * sp,  //
            cr * sy * cp + sr * sp,
            sr * sy * cp - cr * sp,
            cy * cp};
}

// The scale relative to its resting value; 0 when the layout has no such span.
double scale_offset(const pack::MotionSpec& spec, std::span<const float> motion) {
    const pack::MotionSpan* span = spec.find(pack::SpanKind::scale);
    if (span == nullptr) return 0.0;
    return motion[static_cast<size_t>(span->offset)] + span->stored_offset - span->neutral;
}

std::array<double, 3> translation(const pack::MotionSpec& spec, std::span<const float> motion) {
    std::array<double, 3> t{};
    if (const auto* span = spec.find(pack::SpanKind::translation); span != nullptr) {
        for (size_t i = 0; i < static_cast<size_t>(span->axes); ++i) {
            t.at(i) = motion[static_cast<size_t>(span->offset) + i] - span->neutral;
        }
    }
    return t;
}

void require_size(const pack::MotionSpec& spec, pack::SpanKind kind, size_t wanted) {
    const pack::MotionSpan* span = spec.find(kind);
    if (span != nullptr && static_cast<size_t>(span->size) != wanted) {
        throw Error(ErrorCode::bad_pack, fmt::format("motion span \"{}\": found {} dims, wanted {}",
                                                     span->name, span->size, wanted));
    }
}

std::vector<float> basis_of(const pack::Pack& pack) {
    const std::string& name = pack.manifest().keypoints.expression_basis;
    if (name.empty()) return {};
    const auto values = pack.constant(name).as<float>();
    return {values.begin(), values.end()};
}

}  // namespace

Composer::Composer(const pack::Pack& pack, std::vector<SourcePose> sources)
    : Composer(pack.manifest(), basis_of(pack), std::move(sources)) {}

Composer::Composer(const pack::Manifest& manifest, std::vector<float> basis,
                   std::vector<SourcePose> sources)
    : spec_(manifest.motion),
      keypoints_(static_cast<size_t>(manifest.keypoints.count)),
      basis_(std::move(basis)),
      sources_(std::move(sources)) {
    using pack::SpanKind;
    for (const auto kind :
         {SpanKind::scale, SpanKind::pitch_deg, SpanKind::yaw_deg, SpanKind::roll_deg}) {
        const auto* span = spec_.find(kind);
        if (span == nullptr || !span->bins) require_size(spec_, kind, 1);
    }
    require_size(spec_, SpanKind::translation, 3);
    require_size(spec_, SpanKind::expression, keypoints_ * 3);
    const auto* shapes = spec_.find(SpanKind::blendshapes);
    const size_t basis_size =
        shapes == nullptr ? 0 : static_cast<size_t>(shapes->size) * keypoints_ * 3;
    if (basis_.size() != basis_size) {
        throw Error(ErrorCode::bad_pack, fmt::format("expression basis: found {} values, wanted {}",
                                                     basis_.size(), basis_size));
    }
    for (const SourcePose& source : sources_) {
        if (source.canonical_keypoints.size() != keypoints_ * 3 ||
            source.motion.size() != static_cast<size_t>(spec_.dims)) {
            throw Error(ErrorCode::bad_pack,
                        fmt::format("source pose: found {} keypoint values and {} motion dims, "
                                    "wanted {} and {}",
                                    source.canonical_keypoints.size(), source.motion.size(),
                                    keypoints_ * 3, spec_.dims));
        }
    }
}

// Keypoint offsets [K*3] of a row's blendshapes and expression.
std::vector<double> Composer::expression(std::span<const float> motion) const {
    std::vector<double> delta(keypoints_ * 3);
    if (const auto* span = spec_.find(pack::SpanKind::blendshapes); span != nullptr) {
        for (size_t c = 0; c < static_cast<size_t>(span->size); ++c) {
            const double weight = motion[static_cast<size_t>(span->offset) + c];
            const float* direction = basis_.data() + c * delta.size();
            for (size_t i = 0; i < delta.size(); ++i) delta[i] += weight * direction[i];
        }
    }
    if (const auto* span = spec_.find(pack::SpanKind::expression); span != nullptr) {
        for (size_t i = 0; i < delta.size(); ++i) {
            delta[i] += motion[static_cast<size_t>(span->offset) + i];
        }
    }
    return delta;
}

std::vector<float> Composer::source_keypoints(int64_t source) const {
    PosedRow row{.row = sources_.at(static_cast<size_t>(source)).motion};
    if (!spec_.composition) {
        // These add to the source's own, so at rest nothing is added.
        for (size_t i = 0; i < kPoseKinds.size(); ++i) row.set_angle(spec_, i, 0.0);
        for (const auto kind : {pack::SpanKind::scale, pack::SpanKind::translation}) {
            const auto* span = spec_.find(kind);
            if (span == nullptr) continue;
            const auto rest = static_cast<float>(span->neutral - span->stored_offset);
            std::fill_n(row.row.begin() + span->offset, span->size, rest);
        }
    }
    return driving_keypoints(row, source);
}

// Pitch, yaw and roll in degrees.
std::array<double, 3> Composer::angles(const PosedRow& motion, int64_t source) const {
    std::array<double, 3> angles{};
    for (size_t i = 0; i < angles.size(); ++i) {
        angles.at(i) = motion.angle(spec_, i);
        if (spec_.composition) continue;
        const SourcePose& pose = sources_.at(static_cast<size_t>(source));
        angles.at(i) += angle_deg(spec_, kPoseKinds.at(i), pose.motion);
    }
    return angles;
}

Quaternion Composer::rotation(const PosedRow& motion, int64_t source) const {
    const auto angles = this->angles(motion, source);
    return quaternion_of(angles[0], angles[1], angles[2]);
}

std::vector<float> Composer::shape(std::span<const float> motion, int64_t source) const {
    const std::vector<double> delta = expression(motion);
    std::vector<float> shape = sources_.at(static_cast<size_t>(source)).canonical_keypoints;
    for (size_t i = 0; i < shape.size(); ++i) shape[i] += static_cast<float>(delta[i]);
    return shape;
}

std::vector<float> Composer::driving_keypoints(std::span<const float> motion,
                                               int64_t source) const {
    return driving_keypoints(PosedRow{.row = {motion.begin(), motion.end()}}, source);
}

std::vector<float> Composer::driving_keypoints(const PosedRow& motion, int64_t source) const {
    if (motion.row.size() != static_cast<size_t>(spec_.dims)) {
        throw Error(ErrorCode::runtime, fmt::format("motion row: found {} values, wanted {}",
                                                    motion.row.size(), spec_.dims));
    }
    const SourcePose& pose = sources_.at(static_cast<size_t>(source));
    double scale = 1.0 + scale_offset(spec_, motion.row);
    const auto t = translation(spec_, motion.row);
    std::array<double, 3> t_source{};
    if (!spec_.composition) {
        scale *= 1.0 + scale_offset(spec_, pose.motion);
        t_source = translation(spec_, pose.motion);
    }
    const auto angles = this->angles(motion, source);
    const Matrix r = matrix_of(angles[0], angles[1], angles[2]);
    const std::vector<double> delta = expression(motion.row);

    std::vector<float> driving(keypoints_ * 3);
    for (size_t k = 0; k < driving.size(); k += 3) {
        const float* x = pose.canonical_keypoints.data() + k;
        for (size_t axis = 0; axis < 3; ++axis) {
            const double turned = x[0] * r[axis] + x[1] * r[3 + axis] + x[2] * r[6 + axis];
            driving[k + axis] =
                static_cast<float>(scale * (turned + delta[k + axis]) + t[axis] + t_source[axis]);
        }
    }
    return driving;
}

}  // namespace newscaster::motion
