// What an avatar will do, as a picture: which part is redrawn, how softly, and where its face is.
#pragma once

#include <cstdint>
#include <filesystem>

#include "newscaster/export.h"

namespace newscaster {

struct PreviewPicture {
    std::filesystem::path pack;       // the one that the avatar was made for
    std::filesystem::path avatar;     // its folder
    std::filesystem::path detectors;  // networks that find faces; empty: no landmarks
    std::filesystem::path output;     // PNG of the canvas's size; replaced when it is there
    int64_t source_frame = 0;         // of a clip; from 0
};

// Draws one source frame of an avatar:
//   - dark where the picture stays as it is, fading to its own light over the soft mask;
//   - white: the crop that the networks redraw; yellow: the box that paste-back touches;
//   - green and red: points of the face and irises, or, where `detectors` is empty or finds no face
//     in the crop, magenta: the pack's own keypoints of this source frame.
// Returns whether face and irises were found. The file is complete or not written at all.
// Throws Error: bad_pack (pack, avatar or detectors), bad_input (no such source frame), io.
NEWSCASTER_EXPORT bool draw_preview(const PreviewPicture& preview);

}  // namespace newscaster
