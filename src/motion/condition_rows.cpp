#include "motion/condition_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "newscaster/error.h"

namespace newscaster::motion {

namespace {

using pack::ConditionKind;

void check_rows(const pack::Manifest& manifest, ConditionKind kind, const char* name,
                const std::vector<std::vector<float>>& rows) {
    const auto* span = manifest.motion.find(kind);
    if (span == nullptr) return;
    const auto wanted = static_cast<size_t>(span->size);
    const bool fits = !rows.empty() && std::all_of(rows.begin(), rows.end(), [&](const auto& row) {
        return row.size() == wanted;
    });
    if (!fits) {
        throw Error(ErrorCode::bad_pack,
                    fmt::format("avatar: {}: found {} rows, wanted one of {} numbers per source "
                                "frame, as pack {} asks",
                                name, rows.size(), wanted, manifest.name));
    }
}

template <typename Values>
void put(const Values& values, std::span<float> target) {
    std::transform(values.begin(), values.end(), target.begin(),
                   [](auto value) { return static_cast<float>(value); });
}

}  // namespace

ConditionRows::ConditionRows(const pack::Manifest& manifest, ControlTrack controls,
                             AvatarConditions avatar, uint64_t seed)
    : spec_(manifest.motion), controls_(std::move(controls)), avatar_(std::move(avatar)) {
    const auto* audio = spec_.find(ConditionKind::audio);
    if (audio == nullptr || audio->size != manifest.audio.feature_dims) {
        throw Error(ErrorCode::bad_pack,
                    fmt::format("{}: audio condition: found {} dims, wanted {} (the feature dims)",
                                manifest.name, audio == nullptr ? 0 : audio->size,
                                manifest.audio.feature_dims));
    }
    check_rows(manifest, ConditionKind::eye_open, "eye_open", avatar_.eye_open);
    check_rows(manifest, ConditionKind::eye_ball, "eye_ball", avatar_.eye_ball);
    check_rows(manifest, ConditionKind::source_keypoints, "kp_canonical",
               {avatar_.source_keypoints});
    const Controls& asked = controls_.controls();
    schedules_blinks_ = has_blink_conditions(spec_) &&
                        !(asked.blink_gap_frames.empty() && asked.blink_starts.empty());
    if (schedules_blinks_) {
        blinks_ = BlinkSchedule(asked, {}, static_cast<int64_t>(kBlinkCurve.size()), seed);
    }
}

void ConditionRows::put_emotion(const FrameControls& frame, std::span<float> target) const {
    const pack::ConditionSpan& span = *spec_.find(ConditionKind::emotion);
    std::vector<double> weights(span.labels.size());
    const auto set = [&](const std::string& label, double weight) {
        const auto found = std::find(span.labels.begin(), span.labels.end(), label);
        if (found != span.labels.end()) {
            weights[static_cast<size_t>(found - span.labels.begin())] = weight;
        }
    };
    if (!frame.emotion.empty()) {
        for (const auto& [label, weight] : frame.emotion) set(label, weight);
    } else if (!span.default_labels.empty()) {
        for (const auto& label : span.default_labels) set(label, 1.0);
    } else {
        set(span.default_label, 1.0);
    }
    if (span.softmax_logit) {
        for (double& weight : weights) weight = std::exp(*span.softmax_logit * weight);
    }
    double total = 0.0;
    for (const double weight : weights) total += weight;
    for (double& weight : weights) weight /= total;
    put(weights, target);
}

void ConditionRows::put_blink(int64_t frame, const FrameControls& controls, std::span<float> row) {
    double value = 0.0;
    bool follow = false;
    if (schedules_blinks_) {
        const int64_t place = blinks_.place(std::max<int64_t>(frame, 0));
        value = place < 0 ? 0.0 : kBlinkCurve.at(static_cast<size_t>(place));
        follow = true;
    }
    if (controls.blink) {
        value = *controls.blink;
        follow = true;
    }
    row[static_cast<size_t>(spec_.find(ConditionKind::blink_value)->offset)] =
        static_cast<float>(value);
    row[static_cast<size_t>(spec_.find(ConditionKind::blink_mask)->offset)] = follow ? 1.0F : 0.0F;
}

void ConditionRows::put_eyes(int64_t frame, const pack::ConditionSpan& span,
                             const std::vector<double>& asked,
                             const std::vector<std::vector<float>>& rows,
                             std::span<float> target) const {
    const auto part =
        target.subspan(static_cast<size_t>(span.offset), static_cast<size_t>(span.size));
    if (!asked.empty()) {
        put(asked, part);
        return;
    }
    const bool first = controls_.controls().first_frame_eyes || !avatar_.source_of;
    const int64_t source = first ? 0 : avatar_.source_of(std::max<int64_t>(frame, 0));
    put(rows.at(static_cast<size_t>(source)), part);
}

void ConditionRows::fill(int64_t frame, std::span<const float> features, std::span<float> row) {
    const FrameControls controls = controls_.at(frame);
    std::fill(row.begin(), row.end(), 0.0F);
    for (const auto& span : spec_.conditions) {
        const auto part =
            row.subspan(static_cast<size_t>(span.offset), static_cast<size_t>(span.size));
        switch (span.kind) {
            case ConditionKind::audio:
                std::copy(features.begin(), features.end(), part.begin());
                break;
            case ConditionKind::emotion:
                put_emotion(controls, part);
                break;
            case ConditionKind::eye_open:
                put_eyes(frame, span, controls.eye_open, avatar_.eye_open, row);
                break;
            case ConditionKind::eye_ball:
                put_eyes(frame, span, controls.eye_ball, avatar_.eye_ball, row);
                break;
            case ConditionKind::source_keypoints:
                put(avatar_.source_keypoints, part);
                break;
            case ConditionKind::blink_value:
            case ConditionKind::blink_mask:
                break;
        }
    }
    if (has_blink_conditions(spec_)) put_blink(frame, controls, row);
}

}  // namespace newscaster::motion
