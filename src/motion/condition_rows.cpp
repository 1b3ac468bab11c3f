#include "motion/condition_rows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "newscaster/error.h"

namespace newscaster::motion {

namespace {

size_t emotion_index(const pack::ConditionSpan& span, const std::string& emotion) {
    const std::string& label = emotion.empty() ? span.default_label : emotion;
    const auto found = std::find(span.labels.begin(), span.labels.end(), label);
    if (found == span.labels.end()) {
        throw Error(ErrorCode::bad_input, fmt::format("emotion: found \"{}\", wanted one of {}",
                                                      label, fmt::join(span.labels, ", ")));
    }
    return static_cast<size_t>(found - span.labels.begin());
}

}  // namespace

ConditionRows::ConditionRows(const pack::Manifest& manifest, const std::string& emotion)
    : fixed_(static_cast<size_t>(manifest.motion.condition_dims), 0.0F) {
    const auto* audio = manifest.motion.find(pack::ConditionKind::audio);
    if (audio == nullptr || audio->size != manifest.audio.feature_dims) {
        throw Error(ErrorCode::bad_pack,
                    fmt::format("{}: audio condition: found {} dims, wanted {} (the feature dims)",
                                manifest.name, audio == nullptr ? 0 : audio->size,
                                manifest.audio.feature_dims));
    }
    audio_offset_ = static_cast<size_t>(audio->offset);
    if (const auto* span = manifest.motion.find(pack::ConditionKind::emotion); span != nullptr) {
        fixed_.at(static_cast<size_t>(span->offset) + emotion_index(*span, emotion)) = 1.0F;
    } else if (!emotion.empty()) {
        throw Error(ErrorCode::bad_input,
                    fmt::format("emotion: found \"{}\", but pack {} has no emotions", emotion,
                                manifest.name));
    }
}

void ConditionRows::fill(std::span<const float> features, std::span<float> row) const {
    std::copy(fixed_.begin(), fixed_.end(), row.begin());
    std::copy(features.begin(), features.end(),
              row.begin() + static_cast<std::ptrdiff_t>(audio_offset_));
}

}  // namespace newscaster::motion
