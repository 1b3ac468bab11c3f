#include "newscaster/inspect.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <thread>
#include <utility>

#include "avatar/avatar.h"
#include "composite/compositor.h"
#include "core/file.h"
#include "device/device.h"
#include "encode/video_writer.h"
#include "newscaster/error.h"
#include "pack/pack.h"
#include "pipeline/source_report.h"

namespace newscaster {

namespace fs = std::filesystem;

namespace {

constexpr uint64_t kWantedMemoryBytes = 1ULL << 30U;

std::vector<std::string> describe_tensors(const std::map<std::string, pack::TensorSpec>& tensors) {
    std::vector<std::string> lines;
    lines.reserve(tensors.size());
    for (const auto& [name, spec] : tensors) {
        lines.push_back(fmt::format("{} {} {}", name, name_of(spec.dtype), to_string(spec.shape)));
    }
    return lines;
}

uint64_t size_or_zero(const fs::path& file) {
    std::error_code error;
    const auto size = fs::file_size(file, error);
    return error ? 0 : size;
}

// A value of /proc/meminfo in bytes; 0 where there is none.
uint64_t memory_info(const std::string& key) {
    std::ifstream stream("/proc/meminfo");
    std::string name;
    uint64_t kibibytes = 0;
    std::string unit;
    while (stream >> name >> kibibytes) {
        std::getline(stream, unit);
        if (name == key + ":") return kibibytes << 10U;
    }
    return 0;
}

ProviderReport probe(const std::string& provider) {
    ProviderReport report;
    report.name = provider;
    try {
        const auto device = device::open_device(provider, {});
        const auto& info = device->info();
        report.available = true;
        report.device = info.name;
        report.runtime = info.runtime;
        for (const auto precision : info.precisions) {
            report.precisions.emplace_back(device::name_of(precision));
        }
    } catch (const Error& error) {
        report.device = error.what();
    }
    return report;
}

bool can_write(const fs::path& folder) {
    try {
        const AtomicFile probe(folder / "doctor");
        return true;
    } catch (const Error&) {
        return false;
    }
}

bool has(const std::vector<std::string>& list, const char* wanted) {
    return std::find(list.begin(), list.end(), wanted) != list.end();
}

std::vector<std::string> give_advice(const MachineReport& report) {
    std::vector<std::string> advice;
    const auto any = std::any_of(report.providers.begin(), report.providers.end(),
                                 [](const ProviderReport& provider) { return provider.available; });
    if (!any) advice.emplace_back("No provider runs here: reinstall OpenVINO with `make setup`.");
    for (const auto& provider : report.providers) {
        if (provider.name == "cpu" && provider.available && !has(provider.precisions, "bf16")) {
            advice.emplace_back(
                "This CPU has no bf16 instructions; rendering uses f32 and takes longer.");
        }
    }
    if (!has(report.encoders, "libx264")) {
        advice.emplace_back(
            "libav has no libx264: MP4 and MKV cannot be written, use y4m or nv12.");
    }
    if (!has(report.paste_kernels, "avx2")) {
        advice.emplace_back("This CPU has no AVX2; compositing takes longer.");
    }
    if (!report.cache_writable) {
        advice.push_back(
            fmt::format("{} cannot be written, every start compiles anew: set NEWSCASTER_CACHE.",
                        report.cache_dir.string()));
    }
    if (report.memory_available_bytes != 0 && report.memory_available_bytes < kWantedMemoryBytes) {
        advice.push_back(fmt::format("Only {} MiB of memory are free; a render wants about 1024.",
                                     report.memory_available_bytes >> 20U));
    }
    return advice;
}

}  // namespace

PackInfo describe_pack(const fs::path& folder) {
    const auto pack = pack::Pack::open(folder);
    const auto& manifest = pack.manifest();
    PackInfo info{.name = manifest.name,
                  .version = manifest.version,
                  .title = manifest.title,
                  .license = manifest.license,
                  .avatar_key = pack.avatar_key(),
                  .fps = manifest.frame_rate,
                  .sample_rate_hz = manifest.audio.sample_rate_hz,
                  .motion_dims = manifest.motion.dims,
                  .window_frames = manifest.motion.window_frames,
                  .keypoints = manifest.keypoints.count,
                  .crop_px = manifest.crop.size_px,
                  .default_steps = manifest.motion.diffusion.default_steps,
                  .emotions = {},
                  .graphs = {}};
    if (const auto* emotion = manifest.motion.find(pack::ConditionKind::emotion)) {
        info.emotions = emotion->labels;
    }
    for (const auto& [role, spec] : manifest.graphs) {
        PackGraphInfo graph{.role = role,
                            .file = spec.model.file,
                            .bytes = size_or_zero(folder / spec.model.file),
                            .precisions = spec.precisions,
                            .inputs = describe_tensors(spec.inputs),
                            .outputs = describe_tensors(spec.outputs)};
        for (const auto& variant : spec.variants) graph.precisions.push_back(variant.first);
        info.graphs.push_back(std::move(graph));
    }
    return info;
}

std::vector<std::string> verify_pack(const fs::path& folder) {
    const auto pack = pack::Pack::open(folder);
    const auto device = device::open_device("cpu", {});
    return pack.verify(*device);
}

AvatarInfo describe_avatar(const fs::path& folder) {
    const auto summary = avatar::summarize_avatar(folder);
    auto verdict = pipeline::read_verdict(folder);
    return {.name = summary.name,
            .title = summary.title,
            .license = summary.license,
            .pack_name = summary.pack_name,
            .avatar_key = summary.avatar_key,
            .width = summary.width,
            .height = summary.height,
            .source_frames = summary.source_frames,
            .tensor_bytes = summary.tensor_bytes,
            .verdict = std::move(verdict.word),
            .advice = std::move(verdict.advice)};
}

MachineReport inspect_machine() {
    MachineReport report;
    report.version = version();
    report.cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    report.memory_bytes = memory_info("MemTotal");
    report.memory_available_bytes = memory_info("MemAvailable");
    report.cache_dir = default_cache_dir();
    report.cache_writable = can_write(report.cache_dir);
    for (const auto& provider : device::provider_names()) {
        report.providers.push_back(probe(provider));
    }
    report.encoders = encode::available_encoders();
    report.paste_kernels = composite::available_kernels();
    report.advice = give_advice(report);
    return report;
}

std::string version() {
    return NEWSCASTER_VERSION;
}

}  // namespace newscaster
