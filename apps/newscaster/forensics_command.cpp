// newscaster forensics: videos against a reference.
#include <fmt/format.h>

#include "commands.h"
#include "data_paths.h"
#include "forensics_options.h"
#include "interrupt.h"
#include "newscaster/error.h"
#include "newscaster/forensics.h"
#include "progress.h"

namespace newscaster::cli {

namespace {

// What the user gave counts; the avatar, else a look at the reference, fills in the rest.
void complete(ForensicsJob& job, const ForensicsRequest& request) {
    ForensicsRegions found;
    if (!request.avatar.empty()) {
        found = regions_of_avatar(find_data("avatars", request.avatar),
                                  find_data("packs", request.pack));
    } else if (!job.regions.mouth && !job.regions.eyes) {
        try {
            found = find_regions(job.reference, request.detectors.empty()
                                                    ? find_detectors()
                                                    : std::filesystem::path(request.detectors));
        } catch (const Error& error) {
            if (error.code() != ErrorCode::bad_pack) throw;
            found.origin = fmt::format("none looked for: {}", error.what());
        }
    }
    if (!job.regions.face) job.regions.face = found.face;
    if (!job.regions.mouth) job.regions.mouth = found.mouth;
    if (!job.regions.eyes) job.regions.eyes = found.eyes;
    if (job.regions.origin.empty()) {
        job.regions.origin = found.origin;
    } else if (!found.origin.empty()) {
        job.regions.origin += "; others " + found.origin;
    }
}

}  // namespace

int run(const ForensicsRequest& request, const GlobalOptions& global) {
    ForensicsJob job = make_job(request);
    job.log = global.log_sink();
    complete(job, request);
    Progress progress(global.progress, global.quiet);
    const ForensicsReport report = compare_videos(job, [&](int64_t frames) {
        progress.update(frames, std::nullopt);
        return !interrupted();
    });
    progress.finish();
    if (global.json) fmt::print("{}\n", report.summary_json);
    if (!global.quiet) {
        fmt::print(stderr, "{}: {} frames compared; regions: {}\n", report.page.string(),
                   report.frames, job.regions.origin);
    }
    return 0;
}

}  // namespace newscaster::cli
