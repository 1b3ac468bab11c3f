// newscaster/forensics.h: from videos to a folder with numbers, pictures and a page.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <thread>

#include "core/file.h"
#include "forensics/exhibits.h"
#include "forensics/measurements.h"
#include "forensics/report.h"
#include "newscaster/forensics.h"

namespace newscaster {

namespace {

std::optional<Box> checked(const std::optional<CanvasBox>& box, const char* name, int width,
                           int height) {
    if (!box) return std::nullopt;
    if (box->x0 < 0 || box->y0 < 0 || box->x1 > width || box->y1 > height || box->x0 >= box->x1 ||
        box->y0 >= box->y1) {
        throw Error(ErrorCode::bad_input,
                    fmt::format("{} region: found {},{} to {},{}, wanted a box inside {}x{}", name,
                                box->x0, box->y0, box->x1, box->y1, width, height));
    }
    return Box{box->x0, box->y0, box->x1, box->y1};
}

std::vector<std::string> names_of(const ForensicsJob& job) {
    std::vector<std::string> names = job.names;
    if (names.empty()) {
        for (size_t i = 0; i < job.tests.size(); ++i) names.push_back(fmt::format("s{}", i + 2));
    }
    const std::set<std::string> different(names.begin(), names.end());
    if (names.size() != job.tests.size() || different.size() != names.size()) {
        throw Error(ErrorCode::bad_input,
                    fmt::format("names: found {} different ones, wanted one for each of {} videos",
                                different.size(), job.tests.size()));
    }
    return names;
}

void check_frames(const ForensicsJob& job, int64_t count) {
    for (const int64_t frame : job.frames) {
        if (frame >= 0 && frame < count) continue;
        throw Error(ErrorCode::bad_input,
                    fmt::format("frames: found {}, wanted 0 to {}", frame, count - 1));
    }
}

}  // namespace

ForensicsReport compare_videos(const ForensicsJob& job,
                               const std::function<bool(int64_t)>& progress) {
    if (job.tests.empty()) {
        throw Error(ErrorCode::bad_input, "found no video to compare with the reference");
    }
    const std::vector<std::string> names = names_of(job);
    const std::string reference = job.reference.string();
    std::vector<std::string> tests;
    for (const auto& test : job.tests) tests.push_back(test.string());
    const auto format = forensics::VideoSet(reference, tests).format();
    const forensics::Regions regions{
        checked(job.regions.face, "face", format.width, format.height),
        checked(job.regions.mouth, "mouth", format.width, format.height),
        checked(job.regions.eyes, "eyes", format.width, format.height)};
    AtomicFolder folder(
        job.output, job.replace ? AtomicFolder::Existing::replace : AtomicFolder::Existing::refuse);
    const int threads = job.threads > 0
                            ? job.threads
                            : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
    const forensics::Measured measured =
        forensics::measure_videos(reference, tests, names, regions, threads, progress);
    check_frames(job, measured.frames());
    const forensics::Tracks tracks = forensics::read_tracks(
        job.cadence_plan, job.motion, measured.frames(), format.fps.to_double());

    std::vector<int64_t> shown = forensics::worst_frames(measured, job.worst);
    shown.insert(shown.end(), job.frames.begin(), job.frames.end());
    auto exhibits = forensics::write_exhibits(folder.temporary(), reference, tests, regions, shown);
    for (auto& exhibit : exhibits) {
        exhibit.chosen = std::ranges::find(job.frames, exhibit.frame) != job.frames.end();
    }
    const auto json = forensics::to_json(measured, reference, regions, job.regions.origin);
    write_text_atomic(folder.temporary() / "metrics.json", json.dump(2) + "\n");
    write_text_atomic(folder.temporary() / "report.html",
                      forensics::to_html(measured, json, tracks, exhibits));
    folder.commit();
    return {measured.frames(), json.at("summary").dump(2), folder.path() / "report.html"};
}

}  // namespace newscaster
