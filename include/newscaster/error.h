// Errors of the newscaster library.
//
// Inside the library every failure is a newscaster::Error; the C API and the command line turn it
// into a code at one place each. The library itself never prints and never ends the process.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#include "newscaster/export.h"

namespace newscaster {

// What kind of failure; the value is also the exit code of the `newscaster` program.
enum class ErrorCode {
    runtime = 1,             // failed while working
    bad_input = 2,           // wrong usage, option, audio or picture
    bad_pack = 3,            // model pack or avatar missing, corrupt or not matching
    device_unavailable = 4,  // the provider or precision asked for does not run here
    io = 5,                  // a file could not be read or written
    cancelled = 130,         // the caller asked to stop
};

class NEWSCASTER_EXPORT Error : public std::runtime_error {
  public:
    // message: one line, naming the file or option, the value found and the value wanted.
    Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}

    [[nodiscard]] ErrorCode code() const noexcept { return code_; }

    // Stage of the pipeline in which the failure happened ("media", "features", ...); empty
    // outside.
    [[nodiscard]] const std::string& stage() const noexcept { return stage_; }
    void set_stage(std::string stage) { stage_ = std::move(stage); }

  private:
    ErrorCode code_;
    std::string stage_;
};

}  // namespace newscaster
