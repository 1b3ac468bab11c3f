// newscaster sync: lips against sound, as numbers and as a check.
#include <fmt/format.h>

#include <cmath>
#include <string>
#include <vector>

#include "commands.h"
#include "data_paths.h"
#include "interrupt.h"
#include "progress.h"
#include "sync_options.h"

namespace newscaster::cli {

namespace {

std::string percent(const std::optional<double>& value) {
    constexpr double kHundred = 100.0;
    return value ? fmt::format("{:.0f} %", kHundred * *value) : "-";
}

void print(const SyncReport& report) {
    if (report.offset_frames) {
        fmt::print("offset      {:+.2f} frames ({:+.0f} ms), correlation {:.2f}\n",
                   *report.offset_frames, *report.offset_ms, report.correlation);
    } else {
        fmt::print("offset      none found (best correlation {:.2f}, elsewhere {:.2f})\n",
                   report.correlation, report.rival);
    }
    fmt::print("closures    {} of {} p, b, m ({}; {:.0f} % by chance), precision {} ({} of {})\n",
               report.closures_met, report.closures, percent(report.recall), 100.0 * report.chance,
               percent(report.precision), report.closed_right, report.closed_runs);
    fmt::print("measured    {} frames, mouth by {}\n", report.frames, report.mouth);
}

// One line per limit that is not kept.
std::vector<std::string> broken_limits(const SyncRequest& request, const SyncReport& report) {
    std::vector<std::string> lines;
    if (request.max_offset) {
        const int limit = *request.max_offset;
        if (!report.offset_frames) {
            lines.push_back(
                fmt::format("--max-offset: found no offset, wanted at most {} frames", limit));
        } else if (std::abs(std::round(*report.offset_frames)) > limit) {
            lines.push_back(fmt::format("--max-offset: found {:+.2f}, wanted at most {} frames",
                                        *report.offset_frames, limit));
        }
    }
    const auto check = [&](const char* option, const std::optional<double>& limit,
                           const std::optional<double>& found) {
        if (!limit || (found && *found >= *limit)) return;
        lines.push_back(fmt::format("{}: found {}, wanted at least {:.0f} %", option,
                                    found ? percent(found) : "nothing to count", 100.0 * *limit));
    };
    check("--min-recall", request.min_recall, report.recall);
    check("--min-precision", request.min_precision, report.precision);
    return lines;
}

SyncReport measure(const SyncJob& job, const GlobalOptions& global) {
    Progress progress(global.progress, global.quiet);
    return measure_sync(job, [&](int64_t frames) {
        progress.update(frames, std::nullopt);
        return !interrupted();
    });
}

}  // namespace

int run(const SyncRequest& request, const GlobalOptions& global) {
    SyncJob job = make_job(request);
    job.log = global.log_sink();
    job.pack = find_data("packs", request.pack);
    if (!request.avatar.empty()) {
        job.avatar = find_data("avatars", request.avatar);
    } else if (!is_motion_file(request.picture)) {
        job.detectors =
            request.detectors.empty() ? find_detectors() : std::filesystem::path(request.detectors);
    }
    const SyncReport report = measure(job, global);
    if (global.json) {
        fmt::print("{}\n", report.json);
    } else if (!global.quiet) {
        print(report);
    }
    const auto broken = broken_limits(request, report);
    for (const auto& line : broken) fmt::print(stderr, "newscaster: {}\n", line);
    return broken.empty() ? 0 : 1;
}

}  // namespace newscaster::cli
