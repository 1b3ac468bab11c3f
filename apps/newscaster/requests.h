// What a command line asks for: one struct per verb, filled by CommandLine, run by the verbs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "global_options.h"

namespace newscaster::cli {

// newscaster render. Texts that a later step checks (format, preset, precision, ...) are as given.
struct RenderRequest {
    std::string audio;
    std::string avatar = "anna";
    std::string pack = "studio";
    std::string output;  // empty = named after the sound
    std::string format;
    double seconds = 0.0;
    double crf = 18.0;
    std::string preset = "veryfast";
    std::string provider = "auto";
    std::string precision = "auto";
    int device = 0;
    std::string vram_mode = "auto";
    int threads = 0;
    int batch_size = 0;
    bool no_cache = false;
    int64_t steps = 0;
    std::string seed;
    std::string emotion;
    std::string controls;   // file with controls
    std::string character;  // avatar whose motion is borrowed
    std::string export_motion;
    std::string report;
    int stride = 1;
    std::string stride_mode = "warp";
    std::string cadence_plan;
    bool smooth_pose = false;
    double max_angular_acceleration = 0.0;
};

struct PackInfoRequest {
    std::string pack = "studio";
};

struct PackVerifyRequest {
    std::string pack = "studio";
};

struct PackPlanRequest {
    std::string pack = "studio";
    std::string provider = "cuda";
    std::string precision = "f16";
    int64_t batch_size = 8;
    std::string capability = "9.0";
};

struct AvatarInfoRequest {
    std::string avatar = "anna";
};

// newscaster avatar preview.
struct AvatarPreviewRequest {
    std::string avatar = "anna";
    std::string output;  // PREFIX.png and PREFIX.mp4; empty = NAME-preview
    std::string audio;   // empty = the bundled speech
    std::string pack = "studio";
    std::string detectors;  // folder; empty = the bundled ones
    std::string provider = "auto";
    int device = 0;
    int threads = 0;
    bool no_cache = false;
};

// newscaster avatar create. Lists of numbers are as given.
struct AvatarCreateRequest {
    std::string source;
    std::string output;
    std::string pack = "studio";
    std::string crop;  // empty = find the face
    std::string face = "largest";
    std::optional<double> crop_scale;
    std::optional<double> shift_x;
    std::optional<double> shift_y;
    int max_size = 0;
    std::string background;
    int smooth_source = 13;
    std::string detectors;  // folder; empty = the bundled ones
    std::string name;
    std::string title;
    std::string license = "unknown";
    std::string eye_open;
    std::string eye_ball;
    bool force = false;
    bool preview = false;
    std::string provider = "auto";
    int device = 0;
    int threads = 0;
    bool no_cache = false;
};

// newscaster forensics. Boxes are as given.
struct ForensicsRequest {
    std::string reference;
    std::vector<std::string> tests;
    std::string output;
    bool force = false;
    std::string avatar;
    std::string pack = "studio";
    std::string face;
    std::string mouth;
    std::string eyes;
    std::string detectors;  // folder; empty = the bundled ones
    std::vector<std::string> names;
    std::vector<int64_t> frames;
    int worst = 3;
    std::string cadence_plan;
    std::string motion;
    int threads = 0;
};

// newscaster sync.
struct SyncRequest {
    std::string audio;
    std::string picture;
    std::string output;  // JSON file; empty = none
    std::string avatar;
    std::string pack = "studio";
    std::string detectors;  // folder; empty = the bundled ones
    int search_frames = 15;
    int threads = 0;
    std::optional<int> max_offset;
    std::optional<double> min_recall;
    std::optional<double> min_precision;
};

struct DoctorRequest {};

using Request = std::variant<RenderRequest, PackInfoRequest, PackVerifyRequest, PackPlanRequest,
                             AvatarInfoRequest, AvatarPreviewRequest, AvatarCreateRequest,
                             ForensicsRequest, SyncRequest, DoctorRequest>;

struct Invocation {
    GlobalOptions global;
    Request request;
};

}  // namespace newscaster::cli
