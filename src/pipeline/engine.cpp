#include "newscaster/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "core/file.h"
#include "pipeline/engine_impl.h"
#include "pipeline/live_session.h"
#include "pipeline/loaded_avatar.h"

namespace newscaster {

std::unique_ptr<device::Device> open_chosen_device(const EngineOptions& options, const Log& log) {
    device::DeviceOptions device_options;
    device_options.threads = options.threads;
    device_options.log = log;
    if (options.use_cache) {
        device_options.cache_dir =
            options.cache_dir.empty() ? default_cache_dir() : options.cache_dir;
    }
    device_options.ordinal = options.device;
    return device::open_device(options.provider.empty() ? "auto" : options.provider,
                               device_options);
}

void check_options(const EngineOptions& options) {
    constexpr int kMaxThreads = 1024;
    const auto check = [&](const char* name, int value) {
        if (value < 0 || value > kMaxThreads) {
            throw Error(ErrorCode::bad_input,
                        fmt::format("{}: found {}, wanted 0 to {}", name, value, kMaxThreads));
        }
    };
    check("threads", options.threads);
    check("frames in flight", options.frames_in_flight);
    check("device", options.device);
}

namespace {

std::vector<std::string> motion_channel_names(const pack::MotionSpec& motion) {
    std::vector<std::string> names;
    for (const auto& span : motion.layout) {
        for (int64_t i = 0; i < span.size; ++i) {
            if (!span.channels.empty()) {
                names.push_back(span.channels[static_cast<size_t>(i)]);
            } else {
                names.push_back(span.size == 1 ? span.name : fmt::format("{}_{}", span.name, i));
            }
        }
    }
    return names;
}

EngineInfo describe(const pack::Manifest& manifest, const device::DeviceInfo& device) {
    EngineInfo info;
    info.pack_name = manifest.name;
    info.pack_version = manifest.version;
    info.provider = device.provider;
    info.device_name = device.name;
    info.runtime = device.runtime;
    info.sample_rate_hz = manifest.audio.sample_rate_hz;
    info.fps = manifest.frame_rate;
    info.motion_channels = motion_channel_names(manifest.motion);
    if (const auto* emotion = manifest.motion.find(pack::ConditionKind::emotion)) {
        info.emotions = emotion->labels;
    }
    return info;
}

}  // namespace

Engine::Impl::Impl(const EngineOptions& options)
    : log(options.log), pack(pack::Pack::open(options.pack)) {
    check_options(options);
    vram_mode = options.vram_mode;
    const auto start = std::chrono::steady_clock::now();
    device = open_chosen_device(options, log);
    info = describe(manifest(), device->info());
    info.threads = options.threads > 0 ? options.threads : device->info().cores;
    const int batch = device->info().batch;
    const int automatic_count = batch > 1 ? batch : info.threads;
    info.frames_in_flight =
        options.frames_in_flight > 0 ? options.frames_in_flight : automatic_count;
    info.batched = batch > 1 && info.frames_in_flight > 1;

    const bool automatic = options.precision == "auto" || options.precision.empty();
    const device::Precision precision =
        automatic ? pack.pick_precision(device->info(), {pack::role::kWarp, pack::role::kDecoder})
                  : device::precision_from_name(options.precision);
    info.precision = device::name_of(precision);

    const auto load = [&](std::string_view role, device::Precision at, int concurrency) {
        return pack.load_graph(*device, role, at, concurrency);
    };
    // The analysis graphs decide the lips and are a few per cent of a CPU's work: f32. A GPU that
    // draws in f16 would wait for them: f16 there, where the pack allows it.
    const auto load_analysis = [&](std::string_view role) {
        const bool half = info.batched && precision == device::Precision::f16 &&
                          pack.offers(role, device::Precision::f16);
        return load(role, half ? device::Precision::f16 : device::Precision::f32, 1);
    };
    const auto load_renderer = [&](std::string_view role) {
        return info.batched ? pack.load_graph(*device, role, precision, 1, info.frames_in_flight)
                            : load(role, precision, info.frames_in_flight);
    };
    audio_encoder = load_analysis(pack::role::kAudioEncoder);
    motion_generator = load_analysis(pack::role::kMotionGenerator);
    if (manifest().graphs.contains(pack::role::kStitch)) {
        stitch = pack.load_graph(*device, pack::role::kStitch, device::Precision::f32, 1,
                                 info.batched ? info.frames_in_flight : 1);
    }
    warp = load_renderer(pack::role::kWarp);
    decoder = load_renderer(pack::role::kDecoder);

    info.load_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    log(LogLevel::info, "engine: {} on {} ({}), {}, {} frames in flight, ready in {:.2f} s",
        info.pack_name, info.device_name, info.runtime, info.precision, info.frames_in_flight,
        info.load_s);
}

Engine::Engine(const EngineOptions& options) : impl_(std::make_shared<const Impl>(options)) {}

const EngineInfo& Engine::info() const {
    return impl_->info;
}

AvatarPtr Engine::load_avatar(const std::filesystem::path& folder) const {
    return std::make_shared<const pipeline::LoadedAvatar>(impl_, folder);
}

std::unique_ptr<Session> Engine::open_session(const AvatarPtr& avatar,
                                              const SessionOptions& options,
                                              SessionCallbacks callbacks) const {
    auto loaded = std::dynamic_pointer_cast<const pipeline::LoadedAvatar>(avatar);
    if (!loaded || loaded->engine() != impl_.get()) {
        throw Error(ErrorCode::bad_input, "the avatar was not loaded by this engine");
    }
    return std::make_unique<pipeline::LiveSession>(impl_, std::move(loaded), options,
                                                   std::move(callbacks));
}

}  // namespace newscaster
