// Joins overlapping motion windows into one track by linear cross-fade.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "pack/manifest.h"

namespace newscaster::motion {

// How windows are joined; docs/motion.md, "Windows".
struct FusionPlan {
    int64_t window = 0;   // rows of a window
    int64_t overlap = 0;  // rows that it shares with the window before; < window
    bool online = false;
    std::vector<pack::SmoothingSpec> filters{};  // run over rows as they are joined
    pack::ResetSpec reset{};
};

// Window k covers rows [k*hop, k*hop + window), hop = window - overlap. F rows are cross-faded:
// the last F of the track with those F of the new window that end at its row `overlap`; row i of
// them has weight i / F for the newer window. Offline F = overlap, online F = min(overlap, hop).
// Memory: two windows at most.
class WindowFusion {
  public:
    // initial: [dims], the frame before the first window, and what `reset` returns to.
    WindowFusion(FusionPlan plan, std::vector<float> initial);

    // Adds the next window, [window, dims]; returns the rows that became final, in order: all
    // but the last F. Valid until the next call.
    std::span<const float> add(std::span<const float> rows);

    // Rows not final yet, which are once no window follows. [F, dims]; empty before a window.
    [[nodiscard]] std::span<const float> tail() const;

    // Row just before the next window; the initial one before the first. [dims].
    [[nodiscard]] std::span<const float> previous_frame() const { return previous_frame_; }

    // Row 0 of the first window. [dims]; empty before it.
    [[nodiscard]] std::span<const float> first_frame() const { return first_frame_; }

  private:
    void smooth(size_t begin, size_t end);
    void update_previous();
    void forget();

    FusionPlan plan_;
    std::vector<float> initial_;
    size_t dims_;
    size_t hop_;
    size_t faded_;  // F
    size_t reach_ = 0;
    std::vector<float> track_;  // the last rows of the track
    size_t rows_ = 0;           // in track_
    int64_t windows_ = 0;
    std::vector<float> previous_frame_;
    std::vector<float> first_frame_;
};

}  // namespace newscaster::motion
