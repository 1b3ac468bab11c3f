#include "motion/blink_schedule.h"

#include "motion/noise.h"

namespace newscaster::motion {

namespace {

// Philox stream of the gaps; far from those of the samplers, which count up from 0.
constexpr uint32_t kGapStream = 0x8000'0000U;
// Range of random gaps for packs that do not give one: 2.4 to 4 s at 25 frames per second.
constexpr int64_t kMinGapFrames = 60;
constexpr int64_t kMaxGapFrames = 100;

}  // namespace

BlinkSchedule::BlinkSchedule(const Controls& controls, const pack::BlinkSpec& spec, int64_t length,
                             uint64_t seed)
    : gaps_(controls.blink_gap_frames),
      starts_(controls.blink_starts),
      length_(length),
      seed_(seed) {
    if (gaps_.empty() && starts_.empty()) gaps_ = {spec.gap_frames};
    if (gaps_.size() == 1 && gaps_[0] <= 0) {
        if (gaps_[0] == 0) {
            min_gap_ = spec.max_gap_frames > 0 ? spec.min_gap_frames : kMinGapFrames;
            max_gap_ = spec.max_gap_frames > 0 ? spec.max_gap_frames : kMaxGapFrames;
        }
        gaps_.clear();
    }
    plan_next();
}

int64_t BlinkSchedule::next_gap() {
    if (!gaps_.empty()) return gaps_[planned_ % gaps_.size()];
    const auto bits =
        philox4x32({static_cast<uint32_t>(planned_), kGapStream, 0, 0},
                   {static_cast<uint32_t>(seed_), static_cast<uint32_t>(seed_ >> 32U)});
    return min_gap_ +
           static_cast<int64_t>(bits[0] % static_cast<uint64_t>(max_gap_ - min_gap_ + 1));
}

void BlinkSchedule::plan_next() {
    if (!starts_.empty()) {
        start_ = planned_ < starts_.size() ? starts_[planned_] : INT64_MAX;
    } else if (!gaps_.empty() || max_gap_ > 0) {
        start_ = (planned_ == 0 ? 0 : start_ + length_) + next_gap();
    }
    ++planned_;
}

int64_t BlinkSchedule::place(int64_t frame, int64_t end) {
    while (start_ <= frame && frame - start_ >= length_) plan_next();
    if (frame < start_ || start_ > end - length_) return -1;
    return frame - start_;
}

}  // namespace newscaster::motion
