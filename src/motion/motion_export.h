// Motion curves for other renderers: CSV (Apple Live Link Face columns), JSON, NPZ.
#pragma once

#include <filesystem>
#include <memory>
#include <span>

#include "newscaster/types.h"
#include "pack/manifest.h"

namespace newscaster::motion {

// Writes one row per video frame as it comes; the file appears at finish(). Memory does not grow
// with the length. docs/motion.md describes the three formats. Use from one thread at a time.
class MotionExporter {
  public:
    // Format by extension: .csv, .json or .npz. Throws Error(bad_input) for another one and for a
    // .csv of a pack without blendshapes, Error(io) when the place is not writable.
    static std::unique_ptr<MotionExporter> open(const std::filesystem::path& file,
                                                const pack::Manifest& manifest);
    virtual ~MotionExporter() = default;

    // motion: one finite value per dim of the pack's layout, in its units. Frames come in order,
    // from 0, without gaps. Throws Error(runtime) otherwise, Error(io) on write errors.
    virtual void write(int64_t frame, std::span<const float> motion) = 0;
    virtual void finish() = 0;
};

}  // namespace newscaster::motion
