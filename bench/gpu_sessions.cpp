#include <algorithm>
#include <memory>
#include <optional>
#include <thread>

#include "gpu_bench.h"
#include "media/audio_source.h"
#include "newscaster/engine.h"

namespace newscaster::bench {

namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// One session; `first` is when its first frame came.
struct Running {
    std::unique_ptr<Session> session;
    std::optional<Clock::time_point> first;
};

nlohmann::json run_sessions(const Engine& engine, const AvatarPtr& avatar,
                            const std::vector<float>& samples, int count) {
    std::vector<std::unique_ptr<Running>> all;
    const auto opening = Clock::now();
    for (int i = 0; i < count; ++i) {
        auto& running = *all.emplace_back(std::make_unique<Running>());
        SessionCallbacks callbacks;
        callbacks.on_frame = [&running](const VideoFramePtr&) {
            if (!running.first) running.first = Clock::now();
            return true;
        };
        running.session = engine.open_session(avatar, {}, std::move(callbacks));
    }
    const double open_ms = ms_since(opening) / count;
    const auto start = Clock::now();
    std::vector<std::jthread> feeders;
    for (const auto& running : all) {
        feeders.emplace_back([&session = *running->session, &samples] {
            session.push_audio(samples);
            session.close();
            session.wait();
        });
    }
    feeders.clear();
    const double wall_ms = ms_since(start);
    int64_t frames = 0;
    double slowest_first = 0.0;
    for (const auto& running : all) {
        frames += running->session->stats().frames;
        slowest_first =
            std::max(slowest_first,
                     std::chrono::duration<double, std::milli>(*running->first - start).count());
    }
    nlohmann::json stages = nlohmann::json::object();
    for (const auto& stage : all.front()->session->stats().stages) {
        stages[stage.name] = {{"busy_ms", 1000.0 * stage.busy_s}, {"calls", stage.calls}};
    }
    return {{"sessions", count},        {"frames", frames},
            {"wall_ms", wall_ms},       {"fps", 1000.0 * static_cast<double>(frames) / wall_ms},
            {"open_ms", open_ms},       {"first_frame_ms", slowest_first},
            {"stages_of_first", stages}};
}

}  // namespace

nlohmann::json measure_sessions(const SessionBench& wanted) {
    EngineOptions options;
    options.pack = wanted.pack;
    options.provider = wanted.provider;
    options.precision = wanted.precision;
    options.frames_in_flight = wanted.batch;
    const auto loading = Clock::now();
    const Engine engine(options);
    const double load_ms = ms_since(loading);
    const auto avatar = engine.load_avatar(wanted.avatar);
    const int64_t rate = engine.info().sample_rate_hz;
    auto samples = media::read_mono(wanted.speech, rate);
    const auto most = static_cast<size_t>(wanted.seconds * static_cast<double>(rate));
    if (most > 0 && most < samples.size()) samples.resize(most);
    run_sessions(engine, avatar, samples, 1);  // warms up
    nlohmann::json rows = nlohmann::json::array();
    for (const int count : wanted.sessions) {
        rows.push_back(run_sessions(engine, avatar, samples, count));
    }
    return {{"pack", engine.info().pack_name},
            {"device", engine.info().device_name},
            {"runtime", engine.info().runtime},
            {"precision", engine.info().precision},
            {"batch", engine.info().frames_in_flight},
            {"seconds", static_cast<double>(samples.size()) / static_cast<double>(rate)},
            {"load_ms", load_ms},
            {"rows", rows}};
}

}  // namespace newscaster::bench
