// Whether something covers the mouth: a hand, a microphone, a sheet of paper. The landmark network
// guesses on behind it and reports a face all the same.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/stage_types.h"
#include "registration/face_landmarks.h"

namespace newscaster::registration {

// The points of a face keep their colours through a clip; the uncommon ones are something else's.
// Memory: 1.4 kB a frame. Use from one thread at a time.
class MouthCover {
  public:
    // The next frame that shows the face.
    void add(const RgbImage& picture, const FaceLandmarks& face);

    // Of every frame added: share, 0..1, of the points round the mouth that have another colour
    // than usual. A change of the light counts as none.
    [[nodiscard]] std::vector<double> shares() const;

  private:
    using Colour = std::array<uint8_t, 3>;

    std::vector<std::vector<Colour>> frames_;  // colours of all points
    std::vector<size_t> round_mouth_;          // points, by their number
};

// From this share on the mouth counts as covered.
inline constexpr double kCoveredShare = 0.3;

}  // namespace newscaster::registration
