// What shows through the transparent parts of pictures and clips.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "core/stage_types.h"

namespace newscaster::media {

class Backdrop {
  public:
    Backdrop() = default;  // white, and pictures without transparent parts are fine, too

    // "#RRGGBB", or the file of a still picture. Throws Error(bad_input) for another word with '#',
    // and like read_image.
    [[nodiscard]] static Backdrop of(const std::string& text);

    // Somebody asked for it: pictures have to be such that it can show through.
    [[nodiscard]] bool wanted() const { return wanted_; }

    // As large as this, covering it: what is too long on one side is cut equally on both ends.
    [[nodiscard]] RgbImage covering(int width, int height) const;

  private:
    bool wanted_ = false;
    std::array<uint8_t, 3> colour_{255, 255, 255};
    std::optional<RgbImage> image_;
};

}  // namespace newscaster::media
