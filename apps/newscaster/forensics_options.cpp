#include "forensics_options.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "engine_options.h"
#include "newscaster/error.h"
#include "numbers.h"

namespace newscaster::cli {

namespace {

constexpr const char* kFooter =
    "Writes DIR/report.html (opens without a network), DIR/metrics.json and pictures of the worst\n"
    "frames. Regions come from the avatar, from --roi, --mouth and --eyes, or mouth and eyes are\n"
    "looked for in the reference; without any, the whole canvas alone is measured.\n"
    "\n"
    "Examples: newscaster render speech.wav -a anna -o s1.mp4\n"
    "          newscaster render speech.wav -a anna -o s2.mp4 --stride 2\n"
    "          newscaster render speech.wav -a anna -o s3.mp4 --stride 3\n"
    "          newscaster forensics s1.mp4 s2.mp4 s3.mp4 -a anna -o report";

std::optional<CanvasBox> box(const char* option, const std::string& text) {
    if (text.empty()) return std::nullopt;
    std::array<double, 4> numbers{};
    parse_numbers(option, text, numbers.size(), numbers);
    for (const double number : numbers) {
        if (number == std::floor(number) && number >= 0.0 && number <= 1e5) continue;
        throw Error(ErrorCode::bad_input,
                    fmt::format("{}: found {:g}, wanted whole pixels from 0", option, number));
    }
    const auto whole = [&](size_t i) { return static_cast<int>(numbers.at(i)); };
    return CanvasBox{whole(0), whole(1), whole(0) + whole(2), whole(1) + whole(3)};
}

}  // namespace

void add_forensics_options(CLI::App& verb, ForensicsRequest& request) {
    verb.footer(kFooter);
    verb.add_option("reference", request.reference, "Video that the others should look like")
        ->required()
        ->type_name("REF");
    verb.add_option("tests", request.tests, "Videos to compare with it, of the same size and rate")
        ->required()
        ->type_name("TEST...");
    verb.add_option("-o,--output", request.output, "Folder to write")->required()->type_name("DIR");
    verb.add_flag("--force", request.force, "Replace a report that is there already");
    verb.add_option("-a,--avatar", request.avatar, "Avatar in the videos: its face, mouth and eyes")
        ->type_name("AVATAR");
    verb.add_option("--pack", request.pack, "Pack that the avatar was made for")
        ->type_name("PACK")
        ->capture_default_str();
    verb.add_option("--roi", request.face, "Face box: what is drawn anew")->type_name("X,Y,W,H");
    verb.add_option("--mouth", request.mouth, "Box of the mouth")->type_name("X,Y,W,H");
    verb.add_option("--eyes", request.eyes, "Box of both eyes")->type_name("X,Y,W,H");
    verb.add_option("--detectors", request.detectors, "Folder of the face detectors [bundled]")
        ->type_name("DIR");
    verb.add_option("--names", request.names, "Names of the tests [s2, s3, ...]")
        ->delimiter(',')
        ->type_name("A,B,...");
    verb.add_option("--frames", request.frames, "Show these frames, too")
        ->delimiter(',')
        ->type_name("N,N,...");
    verb.add_option("--worst", request.worst, "How many of the worst frames to show")
        ->check(CLI::Range(0, 100))
        ->type_name("N")
        ->capture_default_str();
    verb.add_option("--cadence-plan", request.cadence_plan,
                    "Plan of a test (render --cadence-plan): marks its keyframes")
        ->type_name("FILE");
    verb.add_option("--motion", request.motion,
                    "Motion of the render (render --export-motion x.json): aperture and jerk")
        ->type_name("FILE");
    add_threads_option(verb, request.threads);
}

ForensicsJob make_job(const ForensicsRequest& request) {
    ForensicsJob job;
    job.reference = request.reference;
    job.tests.assign(request.tests.begin(), request.tests.end());
    job.names = request.names;
    job.output = request.output;
    job.replace = request.force;
    job.frames = request.frames;
    job.worst = request.worst;
    job.cadence_plan = request.cadence_plan;
    job.motion = request.motion;
    job.threads = request.threads;
    job.regions.face = box("--roi", request.face);
    job.regions.mouth = box("--mouth", request.mouth);
    job.regions.eyes = box("--eyes", request.eyes);
    if (job.regions.face || job.regions.mouth || job.regions.eyes) {
        job.regions.origin = "given on the command line";
    }
    return job;
}

}  // namespace newscaster::cli
