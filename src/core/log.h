// Log sink: the library is silent unless the caller gives one.
#pragma once

#include <fmt/format.h>

#include <utility>

#include "newscaster/types.h"

namespace newscaster {

// Cheap copyable handle that formats only when a sink is present.
class Log {
  public:
    Log() = default;
    explicit Log(LogSink sink) : sink_(std::move(sink)) {}

    template <typename... Args>
    void operator()(LogLevel level, fmt::format_string<Args...> format, Args&&... args) const {
        if (sink_) sink_(level, fmt::format(format, std::forward<Args>(args)...));
    }

  private:
    LogSink sink_;
};

}  // namespace newscaster
