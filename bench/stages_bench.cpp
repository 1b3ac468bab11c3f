// Every stage alone, on the bundled pack. Counters: items_per_second (wall) and core_ms, the time
// of all threads per item, which says what the stage costs when the cores are shared.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <exception>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "composite/compositor.h"
#include "core/file.h"
#include "decode/decode_stage.h"
#include "encode/video_writer.h"
#include "features/feature_streamer.h"
#include "media/audio_source.h"
#include "motion/motion_generator.h"
#include "stage_fixture.h"
#include "warp/warp_stage.h"

namespace newscaster::bench {

namespace {

namespace fs = std::filesystem;
using State = benchmark::State;

// Frames per worker and step, so that starting threads does not count.
constexpr size_t kFrames = 8;

double process_cpu_s() {
    timespec time{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// Runs `step`, which handles `items` items, as often as the benchmark wants. One step is made
// before the clock starts: first calls allocate.
void measure(State& state, int64_t items, const std::function<void()>& step) {
    step();
    const double start_s = process_cpu_s();
    for (auto _ : state) step();
    const auto all = static_cast<double>(state.iterations() * items);
    state.counters["core_ms"] = 1e3 * (process_cpu_s() - start_s) / all;
    state.SetItemsProcessed(state.iterations() * items);
}

void audio(State& state) {
    const std::string file = StageFixture::speech_file().string();
    const auto seconds = static_cast<int64_t>(media::read_mono(file, 16000).size() / 16000);
    measure(state, seconds, [&] {
        // A rate that is not the file's, so that the resampler works.
        benchmark::DoNotOptimize(media::read_mono(file, 24000).data());
    });
    state.SetLabel("second of audio");
}

void features(State& state, StageFixture& fixture) {
    const auto& engine = fixture.analysis();
    const auto& spec = engine.manifest().audio;
    const auto chunk = static_cast<size_t>(spec.present_frames * spec.samples_per_frame);
    const auto& samples = fixture.samples();
    features::FeatureStreamer streamer(engine.manifest(), *engine.device, *engine.audio_encoder);
    size_t at = 0;
    measure(state, 1, [&] {
        if (at + chunk > samples.size()) at = 0;
        benchmark::DoNotOptimize(streamer.push(std::span(samples).subspan(at, chunk)));
        at += chunk;
    });
    state.SetLabel(fmt::format("chunk of {} frames", spec.present_frames));
}

// From features to fused motion; sampling is nearly all of it. One step is one window.
void motion_window(State& state, StageFixture& fixture, int64_t steps) {
    const auto& engine = fixture.analysis();
    features::FeatureStreamer streamer(engine.manifest(), *engine.device, *engine.audio_encoder);
    motion::MotionOptions options;
    options.steps = steps;
    motion::MotionGenerator generator(engine.pack, *engine.device, *engine.motion_generator,
                                      options, streamer.silence_rows());
    const auto blocks = streamer.push(fixture.samples());
    size_t at = 0;
    int64_t frame = 0;
    measure(state, 1, [&] {
        while (true) {
            const auto& rows = blocks[at++ % blocks.size()].rows;
            const bool sampled =
                !generator.push({.first_frame = frame, .rows = rows.clone()}).empty();
            frame += rows.dim(0);
            if (sampled) break;
        }
    });
    const auto& motion = engine.manifest().motion;
    state.SetLabel(
        fmt::format("window, {} new frames", motion.window_frames - motion.overlap_frames));
}

enum class Part { warp, decode };

// One frame in flight: warp, decoder and their stream.
struct Worker {
    Worker(const StageFixture::Renderer& renderer)
        : stream(renderer.engine->device->make_stream()),
          warp(renderer.engine->manifest().graph(pack::role::kWarp), *renderer.engine->device,
               *renderer.engine->warp, renderer.avatar->sources()),
          decoder(renderer.engine->manifest().graph(pack::role::kDecoder), *renderer.engine->device,
                  *renderer.engine->decoder, renderer.avatar->sources(), warp.outputs()) {}

    void run(Part part, const DrivingFrame& frame) {
        if (part == Part::warp) {
            warp.run(frame, *stream);
            stream->synchronize();
        } else {
            benchmark::DoNotOptimize(decoder.run(frame, *stream).data());
        }
    }

    std::unique_ptr<device::Stream> stream;
    warp::WarpStage warp;
    decode::DecodeStage decoder;
};

void render(State& state, StageFixture& fixture, Part part, const std::string& precision,
            int workers) {
    const auto& frames = fixture.driving();
    const auto& renderer = fixture.renderer(precision, workers);
    std::vector<std::unique_ptr<Worker>> all;
    for (int i = 0; i < workers; ++i) {
        all.push_back(std::make_unique<Worker>(renderer));
        all.back()->run(Part::warp, frames.front());  // something to decode
    }
    size_t at = 0;
    measure(state, static_cast<int64_t>(kFrames) * workers, [&] {
        at += kFrames;
        std::vector<std::jthread> threads;
        threads.reserve(all.size());
        for (auto& worker : all) {
            threads.emplace_back([&frames, &worker, part, at] {
                for (size_t i = 0; i < kFrames; ++i) {
                    worker->run(part, frames[(at + i) % frames.size()]);
                }
            });
        }
    });
}

void composite(State& state, StageFixture& fixture) {
    const auto& renderer = fixture.renderer("f32", 1);
    Worker worker(renderer);
    worker.run(Part::warp, fixture.driving().front());
    const auto crop = worker.decoder.run(fixture.driving().front(), *worker.stream);
    const auto plan = renderer.avatar->plan(0);
    Nv12Image target = plan->background();
    measure(state, 1, [&] {
        plan->paste(crop, target.y.data(), target.width, target.uv.data(), target.width);
        benchmark::ClobberMemory();
    });
}

// The real video, into nowhere.
void encode(State& state, StageFixture& fixture, const std::string& preset) {
    const auto& video = fixture.video();
    encode::WriterOptions options;
    options.output = "/dev/null";
    options.container = encode::Container::mkv;
    options.video.width = video.front()->width;
    options.video.height = video.front()->height;
    options.video.preset = preset;
    options.video.threads = fixture.analysis().info.threads;
    const auto writer = encode::open_writer(options);
    int64_t index = 0;
    measure(state, static_cast<int64_t>(video.size()), [&] {
        for (const auto& frame : video) {
            auto renumbered = std::make_shared<VideoFrame>(*frame);
            renumbered->index = index++;
            writer->write_video(renumbered);
        }
    });
    writer->finish();
    state.SetLabel("1080p frame, crf 18");
}

// cold: every graph is compiled; warm: taken from the cache.
void engine_load(State& state, bool warm) {
    std::string folder = (fs::temp_directory_path() / "newscaster-bench-XXXXXX").string();
    if (warm && ::mkdtemp(folder.data()) == nullptr) {
        state.SkipWithError("no folder for the cache");
        return;
    }
    EngineOptions options = StageFixture::engine_options();
    options.use_cache = warm;
    options.cache_dir = folder;
    measure(state, 1, [&] { const Engine engine(options); });
    state.SetLabel("engine");
    if (warm) fs::remove_all(folder);
}

void add(const std::string& name, std::function<void(State&)> body) {
    benchmark::RegisterBenchmark(name.c_str(),
                                 [body = std::move(body)](State& state) {
                                     try {
                                         body(state);
                                     } catch (const std::exception& exception) {
                                         state.SkipWithError(exception.what());
                                     }
                                 })
        ->Unit(benchmark::kMillisecond)
        ->UseRealTime();
}

void add_renderer(StageFixture& fixture) {
    const int cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    std::vector<int> concurrency{1};
    if (cores > 1) concurrency.push_back(cores);
    const auto& offered = fixture.analysis().device->info().precisions;
    for (const Part part : {Part::warp, Part::decode}) {
        for (const std::string precision : {"f32", "bf16"}) {
            if (std::ranges::find(offered, device::precision_from_name(precision)) ==
                offered.end()) {
                continue;
            }
            for (const int workers : concurrency) {
                add(fmt::format("{}/{}/x{}", part == Part::warp ? "warp" : "decode", precision,
                                workers),
                    [&fixture, part, precision, workers](State& state) {
                        render(state, fixture, part, precision, workers);
                    });
            }
        }
    }
}

void add_all(StageFixture& fixture) {
    add("audio", audio);
    add("features", [&](State& state) { features(state, fixture); });
    for (const int64_t steps : {1, 2, 4, 10}) {
        add(fmt::format("motion/ddim_steps:{}", steps),
            [&fixture, steps](State& state) { motion_window(state, fixture, steps); });
    }
    add_renderer(fixture);
    add("composite", [&](State& state) { composite(state, fixture); });
    for (const std::string preset : {"ultrafast", "superfast", "veryfast"}) {
        add("encode/" + preset,
            [&fixture, preset](State& state) { encode(state, fixture, preset); });
    }
    add("engine_load/cold", [](State& state) { engine_load(state, false); });
    add("engine_load/warm", [](State& state) { engine_load(state, true); });
}

}  // namespace
}  // namespace newscaster::bench

int main(int argc, char** argv) {
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
    newscaster::bench::StageFixture fixture;
    newscaster::bench::add_all(fixture);
    benchmark::RunSpecifiedBenchmarks();
    benchmark::Shutdown();
    return 0;
}
