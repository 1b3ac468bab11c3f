// newscaster/sync.h: phones of the sound against the mouth of the picture.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/file.h"
#include "features/feature_streamer.h"
#include "media/audio_source.h"
#include "newscaster/forensics.h"
#include "newscaster/sync.h"
#include "pack/pack.h"
#include "pipeline/engine_impl.h"
#include "pipeline/mouth_of_video.h"
#include "sync/closures.h"
#include "sync/motion_file.h"
#include "sync/offset.h"
#include "sync/speech_track.h"

namespace newscaster {

namespace {

// The same encoder with its phone logits in the place of its features.
pack::Manifest phones_as_features(pack::Manifest manifest) {
    auto found = manifest.graphs.find(pack::role::kAudioEncoder);
    if (manifest.audio.phones.empty() || found == manifest.graphs.end()) {
        throw Error(ErrorCode::bad_pack,
                    fmt::format("pack {}: its audio encoder tells no phones (audio.phones), which "
                                "sync needs; the bundled studio does",
                                manifest.name));
    }
    auto& bindings = found->second.bindings;
    bindings.at("features") = bindings.at("phones");
    manifest.audio.feature_dims = static_cast<int64_t>(manifest.audio.phones.size());
    return manifest;
}

sync::SpeechTrack read_speech(const SyncJob& job, const pack::Pack& pack, device::Device& device) {
    const auto manifest = phones_as_features(pack.manifest());
    sync::PhoneReader reader(manifest.audio.phones, manifest.name);
    const auto graph =
        pack.load_graph(device, pack::role::kAudioEncoder, device::Precision::f32, 1);
    features::FeatureStreamer streamer(manifest, device, *graph);
    const auto take = [&](const std::vector<FeatureBlock>& blocks) {
        for (const auto& block : blocks) reader.push(block.rows.as<float>());
    };
    media::AudioSourceOptions options;
    options.analysis_rate_hz = manifest.audio.sample_rate_hz;
    options.log = Log(job.log);
    const auto source = media::AudioSource::open(job.audio.string(), options);
    while (const auto piece = source->read()) take(streamer.push(piece->mono));
    const int64_t frames = frames_covering(source->total_source_samples(),
                                           source->format().sample_rate_hz, manifest.frame_rate);
    take(streamer.finish(std::max(frames, streamer.frames_produced())));
    return reader.track();
}

sync::MouthTrack read_mouth(const SyncJob& job, double pack_fps, device::Device& device,
                            const std::function<bool(int64_t)>& progress, std::string& how) {
    if (sync::is_motion_file(job.picture)) {
        how = "motion";
        return sync::read_motion_file(job.picture, pack_fps);
    }
    if (job.avatar.empty()) {
        how = "landmarks";
        return pipeline::mouth_by_landmarks(job.picture, device, job.detectors, progress);
    }
    how = "avatar";
    const auto mouth = regions_of_avatar(job.avatar, job.pack).mouth;
    if (!mouth) {
        throw Error(ErrorCode::bad_pack,
                    fmt::format("{}: found no mouth, wanted a pack with keypoint group \"lips\"",
                                job.avatar.string()));
    }
    return pipeline::mouth_in_box(job.picture, {mouth->x0, mouth->y0, mouth->x1, mouth->y1},
                                  progress);
}

std::optional<double> share(int64_t part, int64_t whole) {
    if (whole == 0) return std::nullopt;
    return static_cast<double>(part) / static_cast<double>(whole);
}

nlohmann::json or_null(const std::optional<double>& value) {
    return value ? nlohmann::json(*value) : nlohmann::json();
}

std::string to_json(const SyncJob& job, const SyncReport& report) {
    auto correlations = nlohmann::json::array();
    for (const auto& value : report.correlations) correlations.push_back(or_null(value));
    return nlohmann::json{{"audio", job.audio.string()},
                          {"picture", job.picture.string()},
                          {"mouth", report.mouth},
                          {"frames", report.frames},
                          {"fps", report.fps},
                          {"offset_frames", or_null(report.offset_frames)},
                          {"offset_ms", or_null(report.offset_ms)},
                          {"correlation", report.correlation},
                          {"rival_correlation", report.rival},
                          {"correlations", correlations},
                          {"closures", report.closures},
                          {"closures_met", report.closures_met},
                          {"closure_recall", or_null(report.recall)},
                          {"chance_recall", report.chance},
                          {"closed_runs", report.closed_runs},
                          {"closed_runs_right", report.closed_right},
                          {"closure_precision", or_null(report.precision)}}
        .dump(2);
}

void check_search(int frames) {
    constexpr int kMostFrames = 250;
    if (frames >= 1 && frames <= kMostFrames) return;
    throw Error(ErrorCode::bad_input,
                fmt::format("search_frames: found {}, wanted 1 to {}", frames, kMostFrames));
}

}  // namespace

bool is_motion_file(const std::filesystem::path& picture) {
    return sync::is_motion_file(picture);
}

SyncReport measure_sync(const SyncJob& job, const std::function<bool(int64_t)>& progress) {
    check_search(job.search_frames);
    std::optional<AtomicFile> output;
    if (!job.output.empty()) output.emplace(job.output);
    EngineOptions options;
    options.provider = "cpu";
    options.threads = job.threads;
    check_options(options);
    const auto device = open_chosen_device(options, Log(job.log));
    const auto pack = pack::Pack::open(job.pack);
    const double pack_fps = pack.manifest().frame_rate.to_double();
    const auto speech = read_speech(job, pack, *device);

    SyncReport report;
    const auto mouth = read_mouth(job, pack_fps, *device, progress, report.mouth);
    const auto opening = sync::resampled(mouth, pack_fps);
    const auto offset = sync::find_offset(speech.opening, opening, job.search_frames);
    report.frames = static_cast<int64_t>(std::min(speech.frames(), opening.size()));
    report.fps = mouth.fps;
    report.correlation = offset.peak;
    report.rival = offset.rival;
    report.correlations = offset.correlations;
    if (offset.frames) {
        constexpr double kMillisecondsPerSecond = 1000.0;
        report.offset_frames = *offset.frames * mouth.fps / pack_fps;
        report.offset_ms = *offset.frames / pack_fps * kMillisecondsPerSecond;
    }
    const auto closures = sync::count_closures(speech, opening, mouth.zero_is_closed);
    report.closures = closures.spoken;
    report.closures_met = closures.met;
    report.closed_runs = closures.seen;
    report.closed_right = closures.right;
    report.chance = closures.chance;
    report.recall = share(closures.met, closures.spoken);
    report.precision = share(closures.right, closures.seen);
    report.json = to_json(job, report);
    if (output) {
        std::ofstream stream(output->temporary(), std::ios::binary);
        stream << report.json << '\n';
        stream.close();
        if (!stream) throw Error(ErrorCode::io, job.output.string() + ": cannot be written");
        output->commit();
    }
    return report;
}

}  // namespace newscaster
