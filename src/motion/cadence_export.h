// The plan of a cadence as JSON and as a picture (SVG timeline).
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "motion/export_file.h"
#include "newscaster/cadence.h"
#include "newscaster/types.h"

namespace newscaster::motion {

// Writes as frames come; both files appear at finish(). Memory does not grow with the length.
// docs/cadence.md describes the JSON. Use from one thread at a time.
class CadenceExporter {
  public:
    // file: .json; the picture gets the same name with .svg. Throws Error(bad_input) for another
    // extension, Error(io) when the place is not writable.
    CadenceExporter(const std::filesystem::path& file, const CadenceOptions& options, Rational fps);

    // Frames in order, from 0.
    void write(const CadenceFrame& frame);
    void finish();

  private:
    void draw_line();

    double fps_;
    ExportFile json_;
    ExportFile picture_;
    std::vector<CadenceFrame> line_;  // of the picture, not yet drawn
    int64_t lines_ = 0;
    int64_t frames_ = 0;
    int64_t keyframes_ = 0;
};

}  // namespace newscaster::motion
