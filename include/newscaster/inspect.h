// Looking at packs, avatars and the machine without rendering.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "newscaster/export.h"
#include "newscaster/types.h"

namespace newscaster {

struct PackGraphInfo {
    std::string role;
    std::string file;
    uint64_t bytes = 0;
    std::vector<std::string> precisions;
    std::vector<std::string> inputs;  // "kp_source f32 [1,48,3]"
    std::vector<std::string> outputs;
};

struct PackInfo {
    std::string name, version, title, license, avatar_key;
    Rational fps;
    int64_t sample_rate_hz = 0;
    int64_t motion_dims = 0;
    int64_t window_frames = 0;
    int64_t keypoints = 0;
    int64_t crop_px = 0;
    int64_t default_steps = 0;
    std::vector<std::string> emotions;
    std::vector<PackGraphInfo> graphs;
};

// Throws Error(bad_pack).
[[nodiscard]] NEWSCASTER_EXPORT PackInfo describe_pack(const std::filesystem::path& folder);

// Hashes every file and compares every graph with the manifest. One line per fault; empty = sound.
[[nodiscard]] NEWSCASTER_EXPORT std::vector<std::string> verify_pack(
    const std::filesystem::path& folder);

// What a provider would run for one graph of a pack.
struct PlanStep {
    std::string kind;    // "kernel", "tensor core" (both generated), "cudnn", "cublaslt"
    std::string label;   // operators that became one, and the first node's name
    std::string result;  // "f16[8,64,32,32] channels last"
    int64_t macs = 0;    // multiply-adds; 0 where they do not matter
};
struct PlannedGraph {
    std::string role;
    std::string file;
    std::vector<PlanStep> steps;
    uint64_t scratch_bytes = 0;           // most that is needed at one time
    uint64_t scratch_bytes_unshared = 0;  // if no two values shared memory
    uint64_t constant_bytes = 0;          // weights on the device
};

struct PlanOptions {
    std::string provider = "cuda";   // the one that plans
    std::string precision = "f16";   // "f32" or "f16"; graphs that do not offer it take f32
    int64_t batch = 8;               // frames a run
    std::string capability = "9.0";  // of the GPU
};

// Needs no GPU. Throws Error(bad_pack), Error(bad_input) for options out of range.
[[nodiscard]] NEWSCASTER_EXPORT std::vector<PlannedGraph> plan_pack(
    const std::filesystem::path& folder, const PlanOptions& options);

struct AvatarInfo {
    std::string name, title, license, pack_name, avatar_key;
    int width = 0;
    int height = 0;
    int64_t source_frames = 0;
    uint64_t tensor_bytes = 0;
    // How suitable its picture or clip is: "good", "usable", "poor", and why. Empty where the crop
    // box was given, and for avatars of other origin. report.json in the folder has the measures.
    std::string verdict;
    std::vector<std::string> advice;
};

// Throws Error(bad_pack).
[[nodiscard]] NEWSCASTER_EXPORT AvatarInfo describe_avatar(const std::filesystem::path& folder);

struct ProviderReport {
    std::string name;  // "cpu"
    bool available = false;
    std::string device;  // or why it is not available
    std::string runtime;
    std::vector<std::string> precisions;
};

struct MachineReport {
    std::string version;  // of newscaster
    int cores = 0;
    uint64_t memory_bytes = 0;
    uint64_t memory_available_bytes = 0;
    std::filesystem::path cache_dir;
    bool cache_writable = false;
    std::vector<ProviderReport> providers;
    std::vector<std::string> encoders;       // libav encoders newscaster can use
    std::vector<std::string> paste_kernels;  // instruction sets of the compositor, best first
    std::vector<std::string> advice;         // one sentence each; empty = all well
};

[[nodiscard]] NEWSCASTER_EXPORT MachineReport inspect_machine();

// "0.1.0"
[[nodiscard]] NEWSCASTER_EXPORT std::string version();

}  // namespace newscaster
