// Progress on standard error: a bar on a terminal, a line every few seconds with --progress plain.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "global_options.h"

namespace newscaster::cli {

class Progress {
  public:
    Progress(ProgressMode mode, bool quiet);
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;
    ~Progress() { finish(); }  // errors are printed after it

    // Called after every frame, from one thread.
    void update(int64_t frames, std::optional<int64_t> total);
    // Clears the bar; call before printing anything else.
    void finish() noexcept;

  private:
    using Clock = std::chrono::steady_clock;
    enum class Style { none, bar, lines };

    void draw_bar(int64_t frames, std::optional<int64_t> total, double fps);

    Style style_ = Style::none;
    Clock::time_point start_;
    Clock::time_point last_draw_;
    bool drawn_ = false;
};

}  // namespace newscaster::cli
