#include "render_options.h"

#include <fmt/format.h>

#include <exception>
#include <filesystem>
#include <string>

#include "engine_options.h"
#include "newscaster/error.h"

namespace newscaster::cli {

namespace {

namespace fs = std::filesystem;

void refuse_missing_features(const RenderRequest& request) {
    const auto refuse = [](const std::string& what) {
        throw Error(ErrorCode::bad_input,
                    what + " is not available in this version; see docs/roadmap.md");
    };
    if (request.precision == "fp8") refuse("--precision fp8");
}

std::string default_output(const RenderRequest& request) {
    if (request.format == "nv12" || request.format == "y4m" || request.format == "mkv") {
        return fs::path(request.audio).stem().string() + "." + request.format;
    }
    const std::string stem = request.audio == "-" ? "newscaster" : fs::path(request.audio).stem();
    return request.format == "png" ? stem + "_frames" : stem + ".mp4";
}

uint64_t parse_seed(const std::string& text) {
    size_t used = 0;
    uint64_t seed = 0;
    try {
        // Not by sign alone: stoull skips white space before one.
        const bool digit_first = !text.empty() && text.front() >= '0' && text.front() <= '9';
        if (digit_first) seed = std::stoull(text, &used, 0);
    } catch (const std::exception&) {
        used = 0;
    }
    if (used == 0 || used != text.size()) {
        throw Error(ErrorCode::bad_input,
                    fmt::format("--seed: found \"{}\", wanted an integer from 0 to 2^64-1", text));
    }
    return seed;
}

void add_output_options(CLI::App& verb, RenderRequest& request) {
    verb.add_option("-o,--output,--output_path", request.output,
                    "Video to write; - for standard output [<audio name>.mp4]")
        ->type_name("FILE");
    verb.add_option("--format", request.format,
                    "mp4, mkv, nv12, y4m or png (a folder of pictures) [by the file name]")
        ->type_name("NAME");
    verb.add_option("--seconds", request.seconds, "Only the first seconds of the audio, 0 = all")
        ->check(CLI::NonNegativeNumber)
        ->type_name("S")
        ->capture_default_str();
    verb.add_option("--crf", request.crf, "H.264 quality, 0 lossless .. 51 smallest")
        ->check(CLI::Range(0.0, 51.0))
        ->type_name("Q")
        ->capture_default_str();
    verb.add_option("--preset", request.preset, "libx264 speed preset, ultrafast .. veryslow")
        ->type_name("NAME")
        ->capture_default_str();
    verb.add_option("--export-motion", request.export_motion,
                    "Also write the motion curves: .csv (Live Link Face), .json or .npz")
        ->type_name("FILE");
    verb.add_option("--cadence-plan,--cadence_plan", request.cadence_plan,
                    "Also write which frames are keyframes and why: .json, and a picture, .svg")
        ->type_name("FILE");
    verb.add_option("--report", request.report, "Write timings and memory of the run as JSON")
        ->type_name("FILE");
}

void add_engine_options(CLI::App& verb, RenderRequest& request) {
    add_device_options(verb, request);
    verb.add_option("--vram-mode,--vram_mode", request.vram_mode,
                    "Avatar tensors on a GPU: auto (by free memory), resident or streamed")
        ->check(CLI::IsMember({"auto", "resident", "streamed"}))
        ->type_name("MODE")
        ->capture_default_str();
    verb.add_option("--precision", request.precision,
                    "Of the renderer: auto (fastest native), f32, bf16, f16, int8")
        ->type_name("NAME")
        ->capture_default_str();
    add_threads_option(verb, request.threads);
    verb.add_option("--batch-size,--batch_size", request.batch_size,
                    "Frames rendered at the same time, 0 = one per thread, or what suits the GPU")
        ->check(CLI::Range(0, 1024))
        ->type_name("N")
        ->capture_default_str();
    verb.add_flag("--no-cache", request.no_cache, "Do not keep compiled graphs");
}

void add_motion_options(CLI::App& verb, RenderRequest& request) {
    verb.add_option("--seed", request.seed,
                    "Head motion and blinks; same seed, same bytes [pack's]")
        ->type_name("N");
    verb.add_option("--steps", request.steps, "Diffusion steps, 0 = the pack's default")
        ->check(CLI::Range(0, 1000))
        ->type_name("N")
        ->capture_default_str();
    verb.add_option("--emotion", request.emotion, "neutral, happy, ... as the pack offers")
        ->type_name("NAME");
    verb.add_option("--controls", request.controls,
                    "JSON file: pose, gaze, blinks, fades, ... overall and per frame")
        ->type_name("FILE");
    verb.add_option("--character", request.character,
                    "Avatar whose eyes, keypoints and scale the motion is made for [the avatar's]")
        ->type_name("AVATAR");
    verb.add_option(
            "--stride", request.stride,
            "Neural keyframe at least every N frames, 1 to 3; 0 = where the motion needs it")
        ->check(CLI::Range(0, 3))
        ->type_name("N")
        ->capture_default_str();
    verb.add_option("--stride-mode,--stride_mode", request.stride_mode,
                    "Frames in between: warp (blend features, decode) or frame (blend pictures, "
                    "faster)")
        ->check(CLI::IsMember({"warp", "frame"}))
        ->type_name("MODE")
        ->capture_default_str();
    verb.add_flag("--smooth-pose,--kinematic_smoothing", request.smooth_pose,
                  "Smoother head motion (Savitzky-Golay); the face moves as before");
    verb.add_option("--max-angular-acceleration", request.max_angular_acceleration,
                    "Bound on how fast turns of the head speed up and brake, rad/s^2; 0 = none")
        ->check(CLI::NonNegativeNumber)
        ->type_name("A")
        ->capture_default_str();
}

}  // namespace

void add_render_options(CLI::App& verb, RenderRequest& request) {
    verb.add_option("audio,--audio_path", request.audio,
                    "Audio or video file with speech; - for standard input")
        ->required()
        ->type_name("AUDIO");
    verb.add_option("-a,--avatar,--avatar_dir", request.avatar,
                    "Presenter: bundled name (anna, marcus, mei) or folder")
        ->type_name("AVATAR")
        ->capture_default_str();
    add_output_options(verb, request);
    add_motion_options(verb, request);
    add_engine_options(verb, request);
}

RenderJob make_job(const RenderRequest& request) {
    refuse_missing_features(request);
    RenderJob job;
    job.audio = request.audio;
    job.output = request.output.empty() ? default_output(request) : request.output;
    job.format = request.format;
    job.max_audio_s = request.seconds;
    job.crf = request.crf;
    job.preset = request.preset;
    job.export_motion = request.export_motion;
    job.cadence_plan = request.cadence_plan;
    job.session.cadence.stride = request.stride;
    job.session.cadence.mode =
        request.stride_mode == "frame" ? StrideMode::frame : StrideMode::warp;
    job.session.smooth_pose = request.smooth_pose;
    job.session.max_angular_acceleration = request.max_angular_acceleration;
    if (request.steps != 0) job.session.steps = request.steps;
    if (!request.seed.empty()) job.session.seed = parse_seed(request.seed);
    job.session.emotion = request.emotion;
    if (!request.controls.empty()) job.session.controls = read_controls(request.controls);
    return job;
}

}  // namespace newscaster::cli
