// Which frames the neural renderer draws: the keyframes of a cadence, and what the frames between
// them are blended from. docs/cadence.md describes the criteria.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string_view>
#include <vector>

#include "motion/rotation.h"
#include "newscaster/cadence.h"
#include "pack/manifest.h"

namespace newscaster::motion {

// What the planner looks at. Both point sets are [K*3] in crop half widths.
struct CadenceInput {
    int64_t source = 0;            // avatar frame
    std::vector<float> keypoints;  // driving
    std::vector<float> shape;      // the face without pose: canonical + expression
    Quaternion rotation;           // of the head
    double level_db = 0.0;         // of the sound during the frame
};

// A keyframe that a frame in between is made from.
struct BlendSource {
    int64_t index = 0;
    double prior = 0.0;  // share where the keypoints leave the choice open; they add up to 1
};

struct CadenceStep {
    CadenceFrame frame;
    std::vector<BlendSource> sources;  // of a frame in between: the keys around it, then older ones
    double strain = 0.0;  // worst of residual and spread over its tolerance; 0 for keyframes
};

// Per-session state; use from one thread at a time. The plan depends on the frames alone, not on
// how they are pushed.
class CadencePlanner {
  public:
    static constexpr int64_t kTurnReach = 3;    // frames either side that make a turn
    static constexpr int kLongestSegment = 4;   // of any stride
    static constexpr size_t kKeysKept = 16;     // keyframes that a blend can reach back to
    static constexpr size_t kBlendSources = 6;  // keyframes in a blend of the warp's outputs

    // Throws Error(bad_input) for options out of range (see check_cadence).
    CadencePlanner(const CadenceOptions& options, const pack::KeypointSpec& keypoints);

    // The next frame. Returns the steps that are settled, in the order of drawing: every frame
    // after the keyframes it is made from. Nothing is settled before longest segment + kTurnReach
    // frames are known beyond it.
    std::vector<CadenceStep> push(CadenceInput input);
    // No more frames: returns the rest.
    std::vector<CadenceStep> finish();

  private:
    struct Frame {
        CadenceInput input;
        CadenceFrame plan;
    };
    struct Key {
        int64_t index = 0;
        int64_t source = 0;
        std::vector<float> keypoints;
        Quaternion rotation;
    };
    struct Group {
        std::vector<double> weights;  // per keypoint
        double residual = 0.0;        // tolerances, in crop half widths
        double spread = 0.0;
    };

    [[nodiscard]] bool adaptive() const { return options_.stride == 0; }
    [[nodiscard]] const Frame& at(int64_t index) const {
        return frames_[static_cast<size_t>(index - first_)];
    }
    [[nodiscard]] int64_t known() const { return first_ + static_cast<int64_t>(frames_.size()); }
    [[nodiscard]] bool turns(int64_t index, double CadenceFrame::*opening) const;
    [[nodiscard]] std::string_view must_be_key(int64_t index) const;
    std::vector<CadenceStep> plan(bool ended);
    // Last frame of the segment that starts at the newest key, at most `end`, and why it ends
    // there.
    int64_t segment_end(int64_t end, std::string_view& reason) const;
    [[nodiscard]] double worst_strain(int64_t after) const;
    [[nodiscard]] std::vector<BlendSource> sources_of(int64_t index, const Key& after) const;
    [[nodiscard]] double strain(int64_t index, const Key& after,
                                const std::vector<BlendSource>& sources) const;
    [[nodiscard]] Key key_of(int64_t index) const;
    void add_key(int64_t index);
    void update_slack(int64_t frames);

    CadenceOptions options_;
    std::vector<int64_t> lips_;
    std::vector<int64_t> eyes_;
    std::vector<Group> groups_;
    std::deque<Frame> frames_;   // from kTurnReach before the newest key on
    int64_t first_ = 0;          // index of frames_.front()
    std::deque<Key> keys_;       // newest last
    int64_t longest_now_ = 1;    // segments grow step by step (hysteresis)
    double slack_ = 1.0;         // factor on the tolerances
    double neural_share_ = 0.0;  // running mean
};

// Loudness of the sound during each video frame. Use from one thread at a time.
class FrameLevels {
  public:
    explicit FrameLevels(int64_t samples_per_frame) : samples_per_frame_(samples_per_frame) {}

    void push(std::span<const float> samples);
    // dB relative to full scale, at least -100; of what arrived so far where the frame is not
    // complete. Frames are asked for in order, each once.
    double take(int64_t frame);

  private:
    int64_t samples_per_frame_;
    int64_t samples_ = 0;
    int64_t first_ = 0;            // frame of energies_.front()
    std::deque<double> energies_;  // sums of squares
};

}  // namespace newscaster::motion
