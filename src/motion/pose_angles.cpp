#include "motion/pose_angles.h"

#include <algorithm>
#include <cmath>

namespace newscaster::motion {

double angle_deg(const pack::MotionSpec& spec, pack::SpanKind kind, std::span<const float> row) {
    const pack::MotionSpan* span = spec.find(kind);
    if (span == nullptr) return 0.0;
    const auto values = part(row, *span);
    if (!span->bins) return values[0] - span->neutral;
    const double top = *std::max_element(values.begin(), values.end());
    double weighted = 0.0;
    double total = 0.0;
    for (size_t i = 0; i < values.size(); ++i) {
        const double share = std::exp(values[i] - top);
        weighted += share * static_cast<double>(i);
        total += share;
    }
    return span->bins->step_deg * weighted / total + span->bins->offset_deg - span->neutral;
}

double PosedRow::angle(const pack::MotionSpec& spec, size_t which) const {
    return angles_deg.at(which).value_or(angle_deg(spec, kPoseKinds.at(which), row));
}

void PosedRow::set_angle(const pack::MotionSpec& spec, size_t which, double degrees) {
    const pack::MotionSpan* span = spec.find(kPoseKinds.at(which));
    if (span == nullptr) return;
    if (span->bins) {
        angles_deg.at(which) = degrees;
    } else {
        row[static_cast<size_t>(span->offset)] = static_cast<float>(degrees + span->neutral);
    }
}

}  // namespace newscaster::motion
