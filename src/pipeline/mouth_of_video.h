// The opening of the mouth in a video.
#pragma once

#include <filesystem>
#include <functional>

#include "core/stage_types.h"
#include "device/device.h"
#include "sync/mouth_track.h"

namespace newscaster::pipeline {

using FrameProgress = std::function<bool(int64_t)>;

// In a mouth box that is known. Throws as SyncJob says.
[[nodiscard]] sync::MouthTrack mouth_in_box(const std::filesystem::path& video, const Box& mouth,
                                            const FrameProgress& progress);

// Between the inner edges of the lips, in distances of the eyes' outer corners; the face is looked
// for in every frame, first where it was. Frames without a face, up to a fifth, are interpolated.
[[nodiscard]] sync::MouthTrack mouth_by_landmarks(const std::filesystem::path& video,
                                                  device::Device& device,
                                                  const std::filesystem::path& detectors,
                                                  const FrameProgress& progress);

}  // namespace newscaster::pipeline
