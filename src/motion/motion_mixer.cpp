#include "motion/motion_mixer.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "motion/gaze.h"

namespace newscaster::motion {

namespace {

using pack::SpanKind;

bool is_expression(SpanKind kind) {
    return kind == SpanKind::blendshapes || kind == SpanKind::expression;
}

std::vector<float> blink_of(const pack::Pack& pack) {
    const auto& composition = pack.manifest().motion.composition;
    if (!composition || composition->blink.offsets.empty()) return {};
    const auto values = pack.constant(composition->blink.offsets).as<float>();
    return {values.begin(), values.end()};
}

// Weight of the driving motion for every dim of the row.
std::vector<double> driving_weights(const pack::MotionSpec& spec, const Controls& controls,
                                    bool is_image, double scale_ratio) {
    std::map<std::string, double> driven = controls.driven_spans;
    if (driven.empty() && spec.composition) {
        driven = is_image ? spec.composition->driven_image : spec.composition->driven_video;
    } else if (driven.empty()) {
        for (const auto& span : spec.layout) driven[span.name] = 1.0;
    }
    std::vector<double> weights(static_cast<size_t>(spec.dims), 0.0);
    for (const auto& span : spec.layout) {
        const auto found = driven.find(span.name);
        if (found == driven.end()) continue;
        const bool follows_scale =
            span.kind != SpanKind::scale && span.kind != SpanKind::translation;
        std::fill_n(weights.begin() + span.offset, span.size,
                    found->second * (follows_scale ? scale_ratio : 1.0));
    }
    return weights;
}

// Per expression dim, whether the keypoint is in the group; all when the group is "".
std::vector<bool> in_group(const pack::KeypointSpec& keypoints, const std::string& group) {
    std::vector<bool> inside(static_cast<size_t>(keypoints.count * 3), group.empty());
    if (group.empty()) return inside;
    for (const int64_t index : keypoints.groups.at(group)) {
        std::fill_n(inside.begin() + 3 * index, 3, true);
    }
    return inside;
}

}  // namespace

MotionMixer::MotionMixer(const pack::Pack& pack, std::vector<SourcePose> sources, Options options)
    : MotionMixer(pack.manifest(), blink_of(pack), std::move(sources), std::move(options)) {}

MotionMixer::MotionMixer(const pack::Manifest& manifest, std::vector<float> blink,
                         std::vector<SourcePose> sources, Options options)
    : spec_(manifest.motion),
      controls_(std::move(options.controls)),
      sources_(std::move(sources)),
      blink_(std::move(blink)) {
    const Controls& asked = controls_.controls();
    const bool is_image = sources_.size() == 1;
    weights_ = driving_weights(spec_, asked, is_image, options.scale_ratio);
    relative_ = asked.relative.value_or(spec_.composition && spec_.composition->relative);
    gaze_correction_ = asked.gaze_correction.value_or(true);
    const auto points = static_cast<size_t>(manifest.keypoints.count * 3);
    driven_.assign(points, 1.0);
    blinking_.assign(points, false);
    if (spec_.composition) {
        const auto& composition = *spec_.composition;
        drive_eyes_ = is_image ? composition.drive_eyes_image : composition.drive_eyes_video;
        drive_eyes_ = asked.drive_eyes.value_or(drive_eyes_);
        const auto mouth = in_group(manifest.keypoints, composition.driven_keypoints);
        const auto eyes = composition.eye_keypoints.empty()
                              ? std::vector<bool>(points, false)
                              : in_group(manifest.keypoints, composition.eye_keypoints);
        for (size_t i = 0; i < points; ++i) {
            blinking_[i] = eyes[i] && drive_eyes_ && !blink_.empty();
            driven_[i] = !blinking_[i] && (mouth[i] || (eyes[i] && drive_eyes_)) ? 1.0 : 0.0;
        }
        fade_spans_ = composition.fade_spans;
    } else {
        drive_eyes_ = asked.drive_eyes.value_or(true);
        for (const auto& span : spec_.layout) fade_spans_.push_back(span.name);
    }
    if (!blink_.empty() && drive_eyes_) {
        const auto length = static_cast<int64_t>(blink_.size() / points);
        blinks_ = BlinkSchedule(asked, spec_.composition->blink, length, options.seed);
        holdback_ = static_cast<size_t>(length) - 1;
    }
    if (asked.fade_out_frames > 0) {
        holdback_ = std::max(holdback_, static_cast<size_t>(asked.fade_out_frames));
    }
}

// Motion of the source in the terms of a driving row.
std::vector<float> MotionMixer::rest_row(int64_t source) const {
    if (spec_.composition) return sources_.at(static_cast<size_t>(source)).motion;
    std::vector<float> row(static_cast<size_t>(spec_.dims));
    for (const auto& span : spec_.layout) {
        const auto values = part(std::span(row), span);
        std::fill(values.begin(), values.end(),
                  static_cast<float>(span.neutral - span.stored_offset));
    }
    return row;
}

void MotionMixer::mix_spans(PosedRow& posed, const std::vector<float>& rest) const {
    for (size_t i = 0; i < posed.row.size(); ++i) {
        float& value = posed.row[i];
        if (weights_[i] == 0.0) {
            value = rest[i];
        } else if (relative_) {
            value = static_cast<float>(rest[i] + (value - reference_[i]) * weights_[i]);
        } else if (weights_[i] != 1.0) {
            value = static_cast<float>(value * weights_[i]);
        }
    }
}

void MotionMixer::mask_expression(PosedRow& posed, const std::vector<float>& rest, int64_t frame,
                                  int64_t end) {
    if (const auto* span = spec_.find(SpanKind::expression); span != nullptr && spec_.composition) {
        const auto offset = static_cast<size_t>(span->offset);
        const int64_t place = std::max<int64_t>(0, blinks_.place(frame, end));
        for (size_t i = 0; i < driven_.size(); ++i) {
            float& value = posed.row[offset + i];
            if (driven_[i] == 0.0) value = rest[offset + i];
            if (blinking_[i]) value += blink_[static_cast<size_t>(place) * driven_.size() + i];
        }
    }
    const auto* shapes = spec_.find(SpanKind::blendshapes);
    if (shapes == nullptr || drive_eyes_) return;
    for (size_t i = 0; i < shapes->channels.size(); ++i) {
        const auto dim = static_cast<size_t>(shapes->offset) + i;
        if (shapes->channels[i].starts_with("eye")) posed.row[dim] = rest[dim];
    }
}

void MotionMixer::offset_expression(PosedRow& posed, const FrameControls& controls) const {
    const auto* shapes = spec_.find(SpanKind::blendshapes);
    const auto* points = spec_.find(SpanKind::expression);
    for (const auto& [name, values] : controls.expression_offset) {
        size_t dim = 0;
        if (values.size() == 1 && shapes != nullptr) {
            const auto found = std::find(shapes->channels.begin(), shapes->channels.end(), name);
            dim = static_cast<size_t>(shapes->offset + (found - shapes->channels.begin()));
        } else if (points != nullptr) {
            int64_t keypoint = 0;
            std::from_chars(name.data(), name.data() + name.size(), keypoint);
            dim = static_cast<size_t>(points->offset + 3 * keypoint);
        }
        for (size_t i = 0; i < values.size(); ++i) {
            posed.row[dim + i] += static_cast<float>(values[i]);
        }
    }
    if (controls.expression_offset.empty() || shapes == nullptr || !shapes->clipped) return;
    for (float& value : part(std::span(posed.row), *shapes)) {
        value =
            std::clamp(value, static_cast<float>(shapes->low), static_cast<float>(shapes->high));
    }
}

void MotionMixer::apply_controls(PosedRow& posed, const FrameControls& controls) const {
    const PoseAngles offset = controls.pose_offset_deg.value_or(PoseAngles{});
    const PoseAngles factor = controls.pose_factor.value_or(PoseAngles{1.0, 1.0, 1.0});
    const std::array<double, 3> offsets{offset.pitch, offset.yaw, offset.roll};
    const std::array<double, 3> factors{factor.pitch, factor.yaw, factor.roll};
    for (size_t i = 0; i < offsets.size(); ++i) {
        if (offsets.at(i) == 0.0 && factors.at(i) == 1.0) continue;
        posed.set_angle(spec_, i, (posed.angle(spec_, i) + offsets.at(i)) * factors.at(i));
    }
    offset_expression(posed, controls);
}

void MotionMixer::fade(PosedRow& posed, const PosedRow& target, double alpha,
                       const std::vector<std::string>& spans) const {
    for (const auto& span : spec_.layout) {
        if (std::find(spans.begin(), spans.end(), span.name) == spans.end()) continue;
        const auto which = static_cast<size_t>(
            std::find(kPoseKinds.begin(), kPoseKinds.end(), span.kind) - kPoseKinds.begin());
        const bool in_degrees = which < kPoseKinds.size() &&
                                (posed.angles_deg.at(which) || target.angles_deg.at(which));
        if (in_degrees) {
            posed.angles_deg.at(which) =
                alpha * posed.angle(spec_, which) + (1.0 - alpha) * target.angle(spec_, which);
        }
        for (int64_t i = span.offset; i < span.offset + span.size; ++i) {
            float& value = posed.row[static_cast<size_t>(i)];
            value = static_cast<float>(value * alpha +
                                       target.row[static_cast<size_t>(i)] * (1.0 - alpha));
        }
    }
}

// The eyes: what the pack's table makes good, what the user's turn of the head asks for, what the
// user asks for. `before`: the pose before the user's controls; pose_share: of it after a fade.
void MotionMixer::turn(PosedRow& posed, const PosedRow& before, double pose_share,
                       const FrameControls& controls) const {
    const GazeAngles gaze = controls.gaze_deg.value_or(GazeAngles{});
    double pitch = -gaze.pitch;
    double yaw = -gaze.yaw;
    if (spec_.composition && spec_.composition->gaze) {
        if (!drive_eyes_) return;
        if (gaze_correction_) {
            const auto& source = sources_.front().motion;
            pitch += posed.angle(spec_, 0) - angle_deg(spec_, kPoseKinds[0], source);
            yaw += posed.angle(spec_, 1) - angle_deg(spec_, kPoseKinds[1], source);
        }
        correct_gaze(spec_, yaw, pitch, posed.row);
        return;
    }
    const bool turned = controls.pose_offset_deg || controls.pose_factor;
    if (gaze_correction_ && turned) {
        PosedRow after = before;
        apply_controls(after, controls);
        pitch += (after.angle(spec_, 0) - before.angle(spec_, 0)) * pose_share;
        yaw += (after.angle(spec_, 1) - before.angle(spec_, 1)) * pose_share;
    }
    turn_eyes(spec_, -yaw, -pitch, posed.row);
}

std::optional<double> MotionMixer::fade_weight(int64_t frame, int64_t end,
                                               const FrameControls& controls) const {
    const Controls& asked = controls_.controls();
    std::optional<double> weight = controls.fade;
    if (frame < asked.fade_in_frames) {
        weight = static_cast<double>(frame) / static_cast<double>(asked.fade_in_frames);
    }
    if (asked.fade_out_frames > 0 && frame >= end - asked.fade_out_frames - 1) {
        weight = static_cast<double>(end - 1 - frame) / static_cast<double>(asked.fade_out_frames);
    }
    return weight;
}

MixedFrame MotionMixer::mix_next(int64_t end) {
    Waiting waiting = std::move(waiting_.front());
    waiting_.pop_front();
    const int64_t frame = next_++;
    const FrameControls controls = controls_.at(frame);
    const std::vector<float> rest = rest_row(waiting.source);
    PosedRow posed{.row = std::move(waiting.motion)};
    mix_spans(posed, rest);
    mask_expression(posed, rest, frame, end);
    if (controls.voice_activity.value_or(1.0) < 1.0) {
        std::vector<std::string> spans;
        for (const auto& span : spec_.layout) {
            if (is_expression(span.kind)) spans.push_back(span.name);
        }
        fade(posed, {.row = rest}, *controls.voice_activity, spans);
    }
    const PosedRow before = posed;
    apply_controls(posed, controls);
    if (!first_) first_ = posed;
    double pose_share = 1.0;
    if (const auto weight = fade_weight(frame, end, controls)) {
        const bool to_first = controls_.controls().fade_to == FadeTo::first_frame;
        const auto& spans = controls.fade_spans.empty() ? fade_spans_ : controls.fade_spans;
        fade(posed, to_first ? *first_ : PosedRow{.row = rest}, *weight, spans);
        const auto* yaw = spec_.find(SpanKind::yaw_deg);
        const bool pose_fades =
            yaw != nullptr && std::find(spans.begin(), spans.end(), yaw->name) != spans.end();
        if (pose_fades) pose_share = to_first ? 1.0 : *weight;
    }
    turn(posed, before, pose_share, controls);
    return {.index = frame, .source = waiting.source, .motion = std::move(posed)};
}

std::vector<MixedFrame> MotionMixer::push(std::span<const float> motion, int64_t source) {
    if (reference_.empty()) reference_.assign(motion.begin(), motion.end());
    waiting_.push_back({.source = source, .motion = {motion.begin(), motion.end()}});
    std::vector<MixedFrame> ready;
    // Frames after those that wait are still to come: the end is open.
    while (waiting_.size() > holdback_) ready.push_back(mix_next(INT64_MAX));
    return ready;
}

std::vector<MixedFrame> MotionMixer::finish() {
    std::vector<MixedFrame> ready;
    const int64_t end = next_ + static_cast<int64_t>(waiting_.size());
    while (!waiting_.empty()) ready.push_back(mix_next(end));
    return ready;
}

}  // namespace newscaster::motion
