#include "motion/cadence_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/keypoint_blend.h"
#include "newscaster/error.h"

namespace newscaster {

namespace {

void require(bool fine, std::string_view field, double found, std::string_view wanted) {
    if (fine) return;
    throw Error(ErrorCode::bad_input,
                fmt::format("cadence, {}: found {}, wanted {}", field, found, wanted));
}

}  // namespace

void check_cadence(const CadenceOptions& options) {
    using motion::CadencePlanner;
    require(options.stride >= 0 && options.stride <= 3, "stride", options.stride, "0, 1, 2 or 3");
    require(
        options.longest_segment >= 1 && options.longest_segment <= CadencePlanner::kLongestSegment,
        "longest_segment", options.longest_segment, "1 to 4");
    require(options.max_neural_share > 0.0 && options.max_neural_share <= 1.0, "max_neural_share",
            options.max_neural_share, "more than 0, at most 1");
    for (const auto& [field, value] : {std::pair{"lips_residual", options.lips_residual},
                                       {"lips_spread", options.lips_spread},
                                       {"eyes_residual", options.eyes_residual},
                                       {"eyes_spread", options.eyes_spread},
                                       {"other_residual", options.other_residual},
                                       {"other_spread", options.other_spread},
                                       {"turn", options.turn}}) {
        require(value > 0.0 && value <= 1.0, field, value, "more than 0, at most 1");
    }
    require(options.onset_rise_db > 0.0 && options.onset_rise_db <= 200.0, "onset_rise_db",
            options.onset_rise_db, "more than 0, at most 200");
    require(options.onset_floor_db >= -200.0 && options.onset_floor_db <= 0.0, "onset_floor_db",
            options.onset_floor_db, "-200 to 0");
}

}  // namespace newscaster

namespace newscaster::motion {

namespace {

constexpr double kSilenceDb = -100.0;
constexpr double kShareMemory = 0.99;  // of the running neural share: 100 frames
constexpr int64_t kGrowth = 2;         // frames that a segment may have more than the one before
constexpr double kSlackStep = 1.1;     // per segment
constexpr double kMostSlack = 1e3;

const std::vector<int64_t>* group_of(const pack::KeypointSpec& keypoints, const char* name) {
    const auto found = keypoints.groups.find(name);
    return found == keypoints.groups.end() ? nullptr : &found->second;
}

// Height of a group of the unposed face, as a share of the crop's width; 0 without the group.
double height_of(const std::vector<int64_t>& group, const std::vector<float>& shape) {
    if (group.empty()) return 0.0;
    const auto y = [&](int64_t k) { return shape[static_cast<size_t>(3 * k + 1)]; };
    const auto [low, high] = std::minmax_element(group.begin(), group.end(),
                                                 [&](int64_t a, int64_t b) { return y(a) < y(b); });
    return 0.5 * (static_cast<double>(y(*high)) - static_cast<double>(y(*low)));
}

std::vector<double> weights_of(const std::vector<int64_t>& group, int64_t count) {
    std::vector<double> weights(static_cast<size_t>(count));
    for (const int64_t k : group) weights[static_cast<size_t>(k)] = 1.0;
    return weights;
}

double mean_square_distance(const std::vector<float>& a, const std::vector<float>& b,
                            const std::vector<double>& weights) {
    double sum = 0.0;
    double total = 0.0;
    for (size_t k = 0; k < weights.size(); ++k) {
        for (size_t axis = 0; axis < 3; ++axis) {
            const double d = static_cast<double>(a[3 * k + axis]) - b[3 * k + axis];
            sum += weights[k] * d * d;
        }
        total += weights[k];
    }
    return sum / total;
}

}  // namespace

CadencePlanner::CadencePlanner(const CadenceOptions& options, const pack::KeypointSpec& keypoints)
    : options_(options) {
    check_cadence(options);
    if (const auto* lips = group_of(keypoints, "lips")) lips_ = *lips;
    if (const auto* eyes = group_of(keypoints, "eyes")) eyes_ = *eyes;
    const auto add = [&](std::vector<double> weights, double residual, double spread) {
        // Shares of the crop's width; keypoints count in half widths.
        groups_.push_back({std::move(weights), 2.0 * residual, 2.0 * spread});
    };
    for (const auto& [name, group] : keypoints.groups) {
        if (group.empty()) continue;
        auto weights = weights_of(group, keypoints.count);
        if (name == "lips") {
            add(std::move(weights), options.lips_residual, options.lips_spread);
        } else if (name == "eyes") {
            add(std::move(weights), options.eyes_residual, options.eyes_spread);
        } else {
            add(std::move(weights), options.other_residual, options.other_spread);
        }
    }
    add(std::vector<double>(static_cast<size_t>(keypoints.count), 1.0), options.other_residual,
        options.other_spread);
}

std::vector<CadenceStep> CadencePlanner::push(CadenceInput input) {
    CadenceFrame plan;
    plan.index = plan.key_before = plan.key_after = known();
    plan.level_db = input.level_db;
    plan.lip_opening = height_of(lips_, input.shape);
    plan.eye_opening = height_of(eyes_, input.shape);
    if (!frames_.empty()) plan.lip_speed = plan.lip_opening - frames_.back().plan.lip_opening;
    frames_.push_back({std::move(input), plan});
    return this->plan(false);
}

std::vector<CadenceStep> CadencePlanner::finish() {
    return plan(true);
}

// A valley of the opening: strictly below the frames before it, not above those after it.
bool CadencePlanner::turns(int64_t index, double CadenceFrame::*opening) const {
    const double here = at(index).plan.*opening;
    double before = here;
    for (int64_t t = std::max(index - kTurnReach, first_); t < index; ++t) {
        if (at(t).plan.*opening <= here) return false;
        before = std::max(before, at(t).plan.*opening);
    }
    double after = here;
    for (int64_t t = index + 1; t < std::min(index + kTurnReach + 1, known()); ++t) {
        if (at(t).plan.*opening < here) return false;
        after = std::max(after, at(t).plan.*opening);
    }
    return std::min(before, after) - here >= options_.turn;
}

// The reason; empty when nothing forces a keyframe.
std::string_view CadencePlanner::must_be_key(int64_t index) const {
    if (turns(index, &CadenceFrame::lip_opening)) return "closure";
    if (turns(index, &CadenceFrame::eye_opening)) return "blink";
    const double level = at(index).plan.level_db;
    const bool onset = level - at(index - 1).plan.level_db >= options_.onset_rise_db &&
                       level >= options_.onset_floor_db;
    return adaptive() && onset ? "onset" : "";
}

CadencePlanner::Key CadencePlanner::key_of(int64_t index) const {
    const CadenceInput& input = at(index).input;
    return {index, input.source, input.keypoints, input.rotation};
}

void CadencePlanner::add_key(int64_t index) {
    keys_.push_back(key_of(index));
    if (keys_.size() > kKeysKept) keys_.pop_front();
    while (first_ < index - kTurnReach) {
        frames_.pop_front();
        ++first_;
    }
}

// The newest key, `after` and, for blends of the warp's outputs, older keys of the same avatar
// frame whose keypoints are nearest.
std::vector<BlendSource> CadencePlanner::sources_of(int64_t index, const Key& after) const {
    const CadenceInput& input = at(index).input;
    const Key& before = keys_.back();
    const double time =
        static_cast<double>(index - before.index) / static_cast<double>(after.index - before.index);
    const double u = nearest_on_arc(before.rotation, after.rotation, input.rotation, time);
    std::vector<BlendSource> sources{{before.index, 1.0 - u}, {after.index, u}};
    if (options_.mode == StrideMode::frame) return sources;
    std::vector<std::pair<double, int64_t>> older;
    for (size_t i = keys_.size() - 1; i-- > 0;) {
        if (keys_[i].source != input.source) continue;
        double distance = 0.0;
        for (const Group& group : groups_) {
            distance += mean_square_distance(keys_[i].keypoints, input.keypoints, group.weights);
        }
        older.emplace_back(distance, keys_[i].index);
    }
    std::stable_sort(older.begin(), older.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [distance, key] : older) {
        if (sources.size() == kBlendSources) break;
        sources.push_back({key, 0.0});
    }
    return sources;
}

double CadencePlanner::strain(int64_t index, const Key& after,
                              const std::vector<BlendSource>& sources) const {
    std::vector<BlendKey> keys;
    for (const BlendSource& source : sources) {
        const auto own = std::ranges::find(keys_, source.index, &Key::index);
        keys.push_back({own == keys_.end() ? after.keypoints : own->keypoints, source.prior});
    }
    const BlendFit fit(at(index).input.keypoints, keys);
    double worst = 0.0;
    for (const Group& group : groups_) {
        const auto shares = fit.shares(group.weights);
        worst = std::max({worst, fit.residual(group.weights, shares) / group.residual,
                          fit.spread(group.weights, shares) / group.spread});
    }
    return worst;
}

// Worst strain of the frames between the newest key and `after`.
double CadencePlanner::worst_strain(int64_t after) const {
    const Key key = key_of(after);
    double worst = 0.0;
    for (int64_t t = keys_.back().index + 1; t < after; ++t) {
        worst = std::max(worst, strain(t, key, sources_of(t, key)));
    }
    return worst;
}

int64_t CadencePlanner::segment_end(int64_t end, std::string_view& reason) const {
    const int64_t start = keys_.back().index;
    for (int64_t t = start + 1; t <= end; ++t) {
        const auto must = must_be_key(t);
        if (must.empty()) continue;
        end = t;
        reason = must;
        break;
    }
    if (!adaptive()) return end;
    int64_t chosen = end;
    while (chosen > start + 1 && worst_strain(chosen) > slack_) --chosen;
    if (chosen != end) reason = "motion";
    return chosen;
}

// The running share of keyframes decides how strictly the tolerances are taken.
void CadencePlanner::update_slack(int64_t frames) {
    for (int64_t i = 0; i < frames; ++i) {
        const double key = i == 0 ? 1.0 : 0.0;
        neural_share_ = kShareMemory * neural_share_ + (1.0 - kShareMemory) * key;
    }
    slack_ = neural_share_ > options_.max_neural_share ? std::min(slack_ * kSlackStep, kMostSlack)
                                                       : std::max(slack_ / kSlackStep, 1.0);
}

std::vector<CadenceStep> CadencePlanner::plan(bool ended) {
    std::vector<CadenceStep> steps;
    const auto emit_key = [&](int64_t index, std::string_view reason) {
        CadenceStep step;
        step.frame = at(index).plan;
        step.frame.reason = reason;
        steps.push_back(std::move(step));
    };
    if (keys_.empty() && !frames_.empty()) {
        emit_key(0, "first");
        add_key(0);
    }
    while (!keys_.empty() && keys_.back().index < known() - 1) {
        const int64_t start = keys_.back().index;
        const int64_t longest = adaptive() ? options_.longest_segment : options_.stride;
        if (!ended && known() <= start + longest + kTurnReach) break;
        const int64_t reach = adaptive() ? std::min(longest, longest_now_) : longest;
        const int64_t limit = std::min(start + reach, known() - 1);
        std::string_view reason = limit < start + reach ? "last" : "stride";
        const int64_t end = segment_end(limit, reason);
        emit_key(end, reason);
        const Key key = key_of(end);
        for (int64_t t = start + 1; t < end; ++t) {
            CadenceStep step;
            step.frame = at(t).plan;
            step.sources = sources_of(t, key);
            step.strain = strain(t, key, step.sources);
            step.frame.neural = false;
            step.frame.key_before = start;
            step.frame.key_after = end;
            steps.push_back(std::move(step));
        }
        longest_now_ = end - start + kGrowth;
        update_slack(end - start);
        add_key(end);
    }
    return steps;
}

void FrameLevels::push(std::span<const float> samples) {
    for (const float sample : samples) {
        const auto frame = static_cast<size_t>(samples_++ / samples_per_frame_ - first_);
        if (frame >= energies_.size()) energies_.resize(frame + 1);
        energies_[frame] += static_cast<double>(sample) * sample;
    }
}

double FrameLevels::take(int64_t frame) {
    while (first_ < frame && !energies_.empty()) {
        energies_.pop_front();
        ++first_;
    }
    if (energies_.empty()) return kSilenceDb;
    const double mean = energies_.front() / static_cast<double>(samples_per_frame_);
    return std::max(kSilenceDb, 10.0 * std::log10(mean + 1e-30));
}

}  // namespace newscaster::motion
