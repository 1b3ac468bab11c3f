// Making an avatar of a picture: crop, features and motion through the pack's own extractors.
//
//   newscaster::AvatarSource source{.picture = "me.jpg", .folder = "avatars/me"};
//   source.detectors = "detectors";  // or source.crop = {.x = 510, .y = 80, .size = 640};
//   newscaster::create_avatar({.pack = "packs/studio"}, source);
//
// docs/avatar-format.md describes the folder it writes.
#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <string>

#include "newscaster/engine.h"
#include "newscaster/export.h"
#include "newscaster/inspect.h"

namespace newscaster {

// The square of a picture that the renderer redraws, in pixels of the upright picture; (0, 0) is
// the corner of the first pixel. A head with some room around it: about 2.3 faces wide.
struct CropBox {
    double x = 0.0;  // left edge before turning
    double y = 0.0;  // upper edge before turning
    double size = 0.0;
    double angle_deg = 0.0;  // turns the square about its centre, clockwise on screen
};

struct AvatarSource {
    // JPEG, PNG, WebP, ... or a video, of which every frame is registered; the content decides.
    std::filesystem::path picture;
    std::filesystem::path folder;  // avatar to write
    bool replace = false;          // an avatar that is in `folder` already
    // None: the face is found by the networks in `detectors`, and cut as the pack wants it.
    std::optional<CropBox> crop;
    std::filesystem::path detectors;  // folder that scripts/fetch_detectors.sh makes
    // Which of several faces: "largest" (of equally large ones the most central), "center", "1" for
    // the largest, "2" for the next, ..., or "X,Y", the one nearest to this pixel.
    std::string face = "largest";
    // Instead of the pack's framing of a found face: side of the crop box in sizes of the face, 1
    // to 10; shifts of its centre in sides of the box, to the right and down the face, -1 to 1.
    std::optional<double> crop_scale;
    std::optional<double> crop_shift_x;
    std::optional<double> crop_shift_y;
    int max_size = 0;  // longer side in pixels; larger sources are made smaller first. 0: kept
    // Shows through transparent parts: "#RRGGBB" or the file of a picture, which covers the canvas
    // and is cut equally on both sides where its shape differs. Empty: white. Sources without
    // transparent parts are refused when it is given.
    std::string background;
    // Video: the crop boxes are the mean of so many frames around each; odd, 1 to 101.
    int smooth_source = 13;
    std::string name;                 // empty = the folder's
    std::string title;                // empty = the name
    std::string license = "unknown";  // of the picture
    // State of the eyes in the picture, for packs whose motion depends on it. Opening, left and
    // right: distances of three pairs of lid points, summed, over the eye's width (0 closed, about
    // 0.8 open). None: measured where the face was found by `detectors`, else 0.8.
    std::optional<std::array<double, 2>> eye_open;
    // Movement of the irises, in crop sizes: x left, x right, y left, y right, z left, z right; 0 =
    // centred. None: measured, else 0.
    std::optional<std::array<double, 6>> eye_ball;
};

// Writes the avatar, complete or not at all, and says what it holds. Of `options`, pack, provider,
// threads, cache and log count. Throws Error: bad_input (picture, crop box, no face), bad_pack (the
// pack has no extractors or no framing, a detector is missing), io, device_unavailable, runtime.
NEWSCASTER_EXPORT AvatarInfo create_avatar(const EngineOptions& options,
                                           const AvatarSource& source);

}  // namespace newscaster
