// The engine as a library: audio samples in, video frames out.
//
//   newscaster::Engine engine({.pack = "packs/studio"});
//   auto avatar = engine.load_avatar("avatars/anna");
//   auto session = engine.open_session(avatar, {}, {.on_frame = [](const auto& frame) { ... }});
//   session->push_audio(samples);   // mono float at engine.info().sample_rate_hz
//   session->close();
//   session->wait();                // every frame was delivered; rethrows the first error
//
// All functions throw newscaster::Error.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "newscaster/cadence.h"
#include "newscaster/controls.h"
#include "newscaster/error.h"
#include "newscaster/export.h"
#include "newscaster/types.h"

namespace newscaster {

// Where the avatar's tensors stay on a GPU.
enum class VramMode {
    automatic,  // resident where they take less than half of the free memory
    resident,   // in GPU memory
    streamed    // in page-locked host memory, copied with every batch that needs them
};

struct EngineOptions {
    std::filesystem::path pack;     // folder with pack.json
    std::string provider = "auto";  // "auto" (best that runs here), "cuda", "cpu"
    int device = 0;                 // which GPU, for providers that have several
    VramMode vram_mode = VramMode::automatic;
    std::string precision = "auto";  // renderer: "auto", "f32", "bf16", "f16", "int8" (as offered)
    int threads = 0;                 // compute threads; 0 = all cores
    // Frames rendered at the same time; 0 = one per thread, or as many as suit a GPU, which draws
    // them in one batch.
    int frames_in_flight = 0;
    bool use_cache = true;            // keep compiled graphs between runs
    std::filesystem::path cache_dir;  // empty = $NEWSCASTER_CACHE, $XDG_CACHE_HOME, ~/.cache
    LogSink log;
};

struct EngineInfo {
    std::string pack_name;
    std::string pack_version;
    std::string provider;     // "cpu", "cuda"
    std::string device_name;  // "AMD EPYC ..."
    std::string runtime;      // "OpenVINO ..."
    std::string precision;    // of the renderer
    int threads = 0;
    int frames_in_flight = 0;
    bool batched = false;        // the frames in flight are drawn by one run of the graphs
    int64_t sample_rate_hz = 0;  // of push_audio
    Rational fps;
    std::vector<std::string> motion_channels;  // names of the motion vector's entries
    std::vector<std::string> emotions;         // labels the pack knows; may be empty
    double load_s = 0.0;                       // time to make the engine ready
};

// A loaded avatar, bound to the engine that loaded it. Immutable; share it between sessions.
class NEWSCASTER_EXPORT Avatar {
  public:
    virtual ~Avatar() = default;
    [[nodiscard]] virtual const std::string& name() const = 0;
    [[nodiscard]] virtual int width() const = 0;
    [[nodiscard]] virtual int height() const = 0;
    [[nodiscard]] virtual int64_t source_frames() const = 0;
};
using AvatarPtr = std::shared_ptr<const Avatar>;

struct SessionOptions {
    std::optional<int64_t> steps;  // diffusion steps; default: the pack's
    std::optional<uint64_t> seed;  // default: the pack's
    std::string emotion;           // default: the pack's
    Controls controls;             // docs/controls.md
    CadenceOptions cadence;        // which frames are keyframes; docs/cadence.md
    // Head pose and translation through a Savitzky-Golay filter (5 frames, quadratic); expression
    // and scale keep every bit. Frames come two later. docs/motion.md, "Smoother head motion".
    bool smooth_pose = false;
    // Bound on the acceleration of pitch, of yaw and of roll, rad/s^2; 0: none.
    double max_angular_acceleration = 0.0;
    // Whose eyes, keypoints and scale the motion is made for; default: the avatar itself. Loaded by
    // the same engine.
    AvatarPtr character;
};

struct SessionCallbacks {
    // Every finished frame in index order, from one thread of the session. Return false to cancel.
    // An exception cancels the session and comes out of wait().
    std::function<bool(const VideoFramePtr& frame)> on_frame;
    // Motion vector of every frame in order, before it is drawn; from another thread. Optional.
    std::function<void(int64_t frame, std::span<const float> motion)> on_motion;
    // The plan of every frame in order, before it is drawn; from the thread of on_motion, some
    // frames later. Optional.
    std::function<void(const CadenceFrame& frame)> on_cadence{};
};

// Time spent inside one stage; several threads may work in a stage at once.
struct StageStats {
    std::string name;  // "features", "motion", "warp", ...
    int64_t calls = 0;
    double busy_s = 0.0;  // sum over calls
    double min_ms = 0.0;
    double mean_ms = 0.0;
    double p95_ms = 0.0;  // within 6 %
    double max_ms = 0.0;
    double first_start_s = 0.0;  // since the session was opened
    double last_end_s = 0.0;
};

// How the head turns, from differences of pitch, yaw and roll between frames.
struct PoseKinematics {
    double mean_jerk = 0.0;          // rad/s^3
    double peak_jerk = 0.0;          // rad/s^3
    double peak_acceleration = 0.0;  // rad/s^2, of one angle
};

struct SessionStats {
    int64_t frames = 0;             // delivered
    int64_t in_between_frames = 0;  // drawn from keyframes, the others by the neural renderer
    double wall_s = 0.0;            // since the session was opened
    std::optional<double> time_to_first_frame_s;
    PoseKinematics pose_given;       // before smooth_pose and max_angular_acceleration
    PoseKinematics pose_drawn;       // after them
    std::vector<StageStats> stages;  // in the order of the data
};

// One stream of speech. push_audio/close from one thread; cancel and stats from any.
class NEWSCASTER_EXPORT Session {
  public:
    virtual ~Session() = default;  // cancels what is still running

    // Appends mono samples in [-1, 1]. Blocks while the pipeline is full. Throws the session's
    // error when it failed, Error(cancelled) when it was cancelled, Error(bad_input) on NaN or
    // infinity.
    virtual void push_audio(std::span<const float> samples) = 0;

    // No more audio: the session draws ceil(samples * fps / rate) frames in all.
    virtual void close() = 0;

    // Blocks until the last frame was delivered. Throws the first error of any stage (its stage()
    // says which), Error(cancelled) after a cancel.
    virtual void wait() = 0;

    virtual void cancel() noexcept = 0;

    [[nodiscard]] virtual SessionStats stats() const = 0;
};

// Device, pack and compiled graphs. Thread-safe; sessions and avatars keep what they need alive.
class NEWSCASTER_EXPORT Engine {
  public:
    // Opens the device and compiles the pack's graphs (from the cache when it has them).
    explicit Engine(const EngineOptions& options);

    [[nodiscard]] const EngineInfo& info() const;
    [[nodiscard]] AvatarPtr load_avatar(const std::filesystem::path& folder) const;
    [[nodiscard]] std::unique_ptr<Session> open_session(const AvatarPtr& avatar,
                                                        const SessionOptions& options,
                                                        SessionCallbacks callbacks) const;

    struct Impl;  // internal

  private:
    std::shared_ptr<const Impl> impl_;
};

}  // namespace newscaster
