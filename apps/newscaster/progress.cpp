#include "progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>

namespace newscaster::cli {

namespace {

constexpr auto kBarInterval = std::chrono::milliseconds(100);
constexpr auto kLineInterval = std::chrono::seconds(2);
constexpr int kDefaultColumns = 80;
constexpr int kTextColumns = 46;  // what stands beside the bar
constexpr int kMaxBar = 40;

int terminal_columns() {
    winsize size{};
    if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
    return kDefaultColumns;
}

std::string eta_text(int64_t frames, std::optional<int64_t> total, double fps) {
    if (!total || fps <= 0.0) return "";
    const auto left_s =
        static_cast<int64_t>(static_cast<double>(std::max<int64_t>(0, *total - frames)) / fps);
    return fmt::format("  ETA {}:{:02}", left_s / 60, left_s % 60);
}

}  // namespace

Progress::Progress(ProgressMode mode, bool quiet) : start_(Clock::now()) {
    if (quiet || mode == ProgressMode::none) return;
    if (mode == ProgressMode::plain) {
        style_ = Style::lines;
    } else if (::isatty(STDERR_FILENO) != 0) {
        style_ = Style::bar;
    }
}

void Progress::update(int64_t frames, std::optional<int64_t> total) {
    if (style_ == Style::none) return;
    const auto now = Clock::now();
    const bool last = total && frames >= *total;
    const auto interval =
        style_ == Style::bar ? Clock::duration(kBarInterval) : Clock::duration(kLineInterval);
    if (drawn_ && !last && now - last_draw_ < interval) return;
    last_draw_ = now;
    drawn_ = true;
    const double elapsed_s = std::chrono::duration<double>(now - start_).count();
    const double fps = elapsed_s > 0.0 ? static_cast<double>(frames) / elapsed_s : 0.0;
    if (style_ == Style::bar) {
        draw_bar(frames, total, fps);
    } else {
        fmt::print(stderr, "{}{} frames, {:.1f} fps{}\n", frames,
                   total ? fmt::format("/{}", *total) : "", fps, eta_text(frames, total, fps));
    }
}

void Progress::draw_bar(int64_t frames, std::optional<int64_t> total, double fps) {
    std::string line = "\r";
    if (total && *total > 0) {
        const int width = std::clamp(terminal_columns() - kTextColumns, 0, kMaxBar);
        const double part =
            std::min(1.0, static_cast<double>(frames) / static_cast<double>(*total));
        const auto filled = static_cast<size_t>(part * width);
        line += fmt::format("[{}{}] {:3.0f}%  ", std::string(filled, '#'),
                            std::string(static_cast<size_t>(width) - filled, ' '), part * 100.0);
    }
    line += fmt::format("{} frames  {:.1f} fps{}\x1b[K", frames, fps, eta_text(frames, total, fps));
    fmt::print(stderr, "{}", line);
    std::fflush(stderr);
}

void Progress::finish() noexcept {
    if (style_ == Style::bar && drawn_) {
        std::fputs("\r\x1b[K", stderr);
        std::fflush(stderr);
    }
    drawn_ = false;
}

}  // namespace newscaster::cli
