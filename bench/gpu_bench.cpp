// Benchmarks of the engine on a GPU, as JSON on stdout:
//
//   newscaster_gpu_bench diffusion --pack PACK
//   newscaster_gpu_bench splice --avatar FOLDER
//   newscaster_gpu_bench sessions --pack PACK --avatar FOLDER --speech FILE --sessions 1,2,4,8
//
// bench/gpu.sh runs them all beside PyTorch and writes the pages.
#include "gpu_bench.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

int main(int argc, char** argv) try {
    namespace bench = newscaster::bench;
    CLI::App app("Measures parts of the engine on a GPU");
    app.require_subcommand(1);
    bench::SessionBench wanted;
    wanted.provider = "cuda";
    wanted.precision = "f16";
    wanted.sessions = {1, 2, 4, 8};
    app.add_option("--provider", wanted.provider, "cuda");
    auto* diffusion = app.add_subcommand("diffusion", "The DDIM loop by steps");
    auto* splice = app.add_subcommand("splice", "Paste-back: region of interest, whole canvas");
    auto* sessions = app.add_subcommand("sessions", "Whole sessions side by side");
    diffusion->add_option("--pack", wanted.pack, "Model pack")->required();
    splice->add_option("--avatar", wanted.avatar, "Avatar with canvas.png")->required();
    sessions->add_option("--pack", wanted.pack, "Model pack")->required();
    sessions->add_option("--avatar", wanted.avatar, "Avatar folder")->required();
    sessions->add_option("--speech", wanted.speech, "Recording")->required();
    sessions->add_option("--seconds", wanted.seconds, "Only its start");
    sessions->add_option("--precision", wanted.precision, "Of the renderer");
    sessions->add_option("--batch", wanted.batch, "Frames a run of the graphs draws");
    sessions->add_option("--sessions", wanted.sessions, "How many at the same time")
        ->delimiter(',');
    CLI11_PARSE(app, argc, argv);
    const auto result = *diffusion ? bench::measure_diffusion(wanted.pack, wanted.provider)
                        : *splice  ? bench::measure_splice(wanted.avatar, wanted.provider)
                                   : bench::measure_sessions(wanted);
    fmt::print("{}\n", result.dump(1));
    return 0;
} catch (const std::exception& exception) {
    std::fprintf(stderr, "newscaster_gpu_bench: %s\n", exception.what());
    return 1;
}
