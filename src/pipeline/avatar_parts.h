// What avatars of pictures and of clips are made of. Private to this room.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "avatar/avatar.h"
#include "core/log.h"
#include "device/device.h"
#include "media/image.h"
#include "newscaster/registration.h"
#include "pack/pack.h"
#include "registration/extractor.h"
#include "registration/face_finder.h"

namespace newscaster::pipeline {

inline constexpr int kMinCanvasPx = 16;

// Where the face is and what its eyes do.
struct Framing {
    CropBox crop;
    std::array<double, 2> eye_open{0.8, 0.8};  // open, looking ahead, unless measured
    std::array<double, 6> eye_ball{};
};

// Video frames have even sides: the last column or row is repeated where the picture's are odd, so
// nothing of it is lost and nothing is stretched. Throws Error(bad_input) under kMinCanvasPx.
[[nodiscard]] RgbImage make_canvas(RgbImage image, const std::string& name);

// What media reads of the source. Throws Error(bad_input) for a bad max_size.
[[nodiscard]] media::PictureLimits limits_of(const AvatarSource& source);

// What shows through transparent parts. Throws Error like media::Backdrop::of.
[[nodiscard]] media::Backdrop backdrop_of(const AvatarSource& source);

// The pack's framing with what the user asked for. Throws Error unless faces can be found
// (detectors) and cut (the pack has a framing), and for values out of range.
[[nodiscard]] pack::FramingSpec choose_framing(const AvatarSource& source,
                                               const pack::Manifest& manifest);

// The crop and the eyes of a face; nullopt when the edge cuts the face in half.
[[nodiscard]] std::optional<Framing> frame_landmarks(const registration::FaceLandmarks& landmarks,
                                                     const pack::FramingSpec& spec,
                                                     const RgbImage& picture);

// Says what a face or a given crop box is too small for.
void warn_if_small(double face_px, const std::string& name, const Log& log);
[[nodiscard]] Framing frame_given(const CropBox& crop, const pack::Manifest& manifest,
                                  const std::string& name, const Log& log);

// What the engine asks of an avatar of one source frame, by name. Without features.appearance only
// the part that every source frame of a clip has (avatar::is_per_frame).
[[nodiscard]] TensorMap make_tensors(const pack::Pack& pack, registration::FaceFeatures features,
                                     const RgbImage& crop, const Framing& framing);

[[nodiscard]] avatar::AvatarDocument describe(const AvatarSource& source, const pack::Pack& pack,
                                              int width, int height,
                                              std::vector<Affine> crop_to_canvas);

// Registers a clip frame by frame and writes its avatar.
void write_clip_avatar(const AvatarSource& source, const pack::Pack& pack, device::Device& device,
                       const Log& log);

}  // namespace newscaster::pipeline
