#include "sync_options.h"

#include "engine_options.h"

namespace newscaster::cli {

namespace {

constexpr const char* kFooter =
    "Prints by how many frames the picture comes after the sound (negative: before), and how many "
    "of\n"
    "the p, b and m that are heard have closed lips. With limits it is a check: exit code 1 when "
    "one\n"
    "is not kept, or when no offset can be found.\n"
    "\n"
    "Examples: newscaster render speech.wav -a anna -o s.mp4 --export-motion s.json\n"
    "          newscaster sync speech.wav s.json --max-offset 0 --min-recall 0.8\n"
    "          newscaster sync speech.wav s.mp4 -a anna --max-offset 1\n"
    "          newscaster sync interview.mp4 interview.mp4 -o sync.json";

}  // namespace

void add_sync_options(CLI::App& verb, SyncRequest& request) {
    verb.footer(kFooter);
    verb.add_option("audio", request.audio, "Sound: any audio or video file, - = standard input")
        ->required()
        ->type_name("AUDIO");
    verb.add_option("picture", request.picture,
                    "Video, or motion of a render (--export-motion x.json or x.csv)")
        ->required()
        ->type_name("VIDEO|MOTION");
    verb.add_option("-o,--output", request.output, "Write all numbers as JSON")->type_name("FILE");
    verb.add_option("-a,--avatar", request.avatar,
                    "Avatar in the video: where its mouth is [the face is looked for]")
        ->type_name("AVATAR");
    verb.add_option("--pack", request.pack, "Pack whose audio encoder listens: name or folder")
        ->type_name("PACK")
        ->capture_default_str();
    verb.add_option("--detectors", request.detectors, "Folder of the face detectors [bundled]")
        ->type_name("DIR");
    verb.add_option("--search", request.search_frames, "Look for offsets up to N frames")
        ->check(CLI::Range(1, 250))
        ->type_name("N")
        ->capture_default_str();
    verb.add_option("--max-offset", request.max_offset,
                    "Fail when the offset, rounded, is larger than N frames either way")
        ->check(CLI::Range(0, 250))
        ->type_name("N");
    verb.add_option("--min-recall", request.min_recall,
                    "Fail when a smaller share of p, b, m has closed lips")
        ->check(CLI::Range(0.0, 1.0))
        ->type_name("R");
    verb.add_option("--min-precision", request.min_precision,
                    "Fail when a smaller share of closed lips is at p, b, m")
        ->check(CLI::Range(0.0, 1.0))
        ->type_name("P");
    add_threads_option(verb, request.threads);
}

SyncJob make_job(const SyncRequest& request) {
    SyncJob job;
    job.audio = request.audio;
    job.picture = request.picture;
    job.output = request.output;
    job.search_frames = request.search_frames;
    job.threads = request.threads;
    return job;
}

}  // namespace newscaster::cli
