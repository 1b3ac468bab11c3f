// Motion curves for other renderers: CSV (Apple Live Link Face columns), JSON, NPZ.
#pragma once

#include <filesystem>
#include <memory>
#include <span>

#include "newscaster/types.h"
#include "pack/manifest.h"

namespace newscaster::motion {

// Writes one row per video frame as it comes; the file appears at finish(). Format by extension
// (.csv, .json, .npz). Throws Error(bad_input) for another one, Error(io) on write errors.
class MotionExporter {
  public:
    static std::unique_ptr<MotionExporter> open(const std::filesystem::path& file,
                                                const pack::Manifest& manifest);
    virtual ~MotionExporter() = default;
    virtual void write(int64_t frame, std::span<const float> motion) = 0;
    virtual void finish() = 0;
};

}  // namespace newscaster::motion
