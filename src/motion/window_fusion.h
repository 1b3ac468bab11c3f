// Joins overlapping motion windows into one track by linear cross-fade.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace newscaster::motion {

// Window k covers rows [k*hop, k*hop + window), hop = window - overlap. In the overlap, row i of
// the newer window has weight i / overlap. Memory: one window.
class WindowFusion {
  public:
    // 0 <= overlap < window; neutral: [dims], the frame before the first window.
    WindowFusion(int64_t window, int64_t overlap, std::vector<float> neutral);

    // Adds the next window, [window, dims]; returns its first hop rows, which are final. Valid
    // until the next call.
    std::span<const float> add(std::span<const float> rows);

    // Rows after the last hop: final once no window follows. [overlap, dims].
    [[nodiscard]] std::span<const float> tail() const;

    // Fused row just before the next window; the neutral one before the first. [dims].
    [[nodiscard]] std::span<const float> previous_frame() const { return previous_frame_; }

  private:
    size_t dims_;
    size_t overlap_;
    size_t hop_;
    std::vector<float> fused_;  // [window, dims]; empty before the first window
    std::vector<float> previous_frame_;
};

}  // namespace newscaster::motion
