#include "render_report.h"

#include "newscaster/inspect.h"
#include "process_usage.h"

namespace newscaster::cli {

namespace {

nlohmann::json to_json(const PoseKinematics& pose) {
    return {{"mean_jerk_rad_s3", pose.mean_jerk},
            {"peak_jerk_rad_s3", pose.peak_jerk},
            {"peak_acceleration_rad_s2", pose.peak_acceleration}};
}

}  // namespace

nlohmann::json to_json(const RenderReport& report, const EngineInfo& engine, const Avatar& avatar,
                       const RenderJob& job) {
    auto stages = nlohmann::json::array();
    for (const auto& stage : report.session.stages) {
        stages.push_back({{"name", stage.name},
                          {"calls", stage.calls},
                          {"busy_s", stage.busy_s},
                          {"min_ms", stage.min_ms},
                          {"mean_ms", stage.mean_ms},
                          {"p95_ms", stage.p95_ms},
                          {"max_ms", stage.max_ms},
                          {"first_start_s", stage.first_start_s},
                          {"last_end_s", stage.last_end_s}});
    }
    const ProcessUsage usage = process_usage();
    return {{"newscaster", version()},
            {"audio", job.audio},
            {"output", job.output},
            {"avatar", avatar.name()},
            {"width", avatar.width()},
            {"height", avatar.height()},
            {"engine",
             {{"pack", engine.pack_name},
              {"pack_version", engine.pack_version},
              {"provider", engine.provider},
              {"device", engine.device_name},
              {"runtime", engine.runtime},
              {"precision", engine.precision},
              {"threads", engine.threads},
              {"frames_in_flight", engine.frames_in_flight},
              {"batched", engine.batched},
              {"load_s", engine.load_s}}},
            {"frames", report.frames},
            {"stride", job.session.cadence.stride},
            {"stride_mode", job.session.cadence.mode == StrideMode::warp ? "warp" : "frame"},
            {"neural_frames", report.frames - report.session.in_between_frames},
            {"in_between_frames", report.session.in_between_frames},
            {"pose",
             {{"smoothed", job.session.smooth_pose},
              {"max_angular_acceleration", job.session.max_angular_acceleration},
              {"given", to_json(report.session.pose_given)},
              {"drawn", to_json(report.session.pose_drawn)}}},
            {"audio_s", report.audio_s},
            {"audio_codec", report.audio_codec},
            {"audio_carry", report.audio_carry},
            {"wall_s", report.wall_s},
            {"rtf", report.rtf},
            {"fps", report.fps},
            {"ttff_s", report.time_to_first_frame_s},
            {"cpu_s", usage.cpu_s},
            {"peak_rss_bytes", usage.peak_rss_bytes},
            {"stages", stages}};
}

}  // namespace newscaster::cli
