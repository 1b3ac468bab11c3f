// What an Engine owns; shared by its avatars and sessions.
#pragma once

#include <filesystem>
#include <memory>

#include "core/log.h"
#include "device/device.h"
#include "newscaster/engine.h"
#include "pack/pack.h"

namespace newscaster {

// The device that options name, with its cache folder. Throws Error(device_unavailable).
[[nodiscard]] std::unique_ptr<device::Device> open_chosen_device(const EngineOptions& options,
                                                                 const Log& log);

// Throws Error(bad_input) for counts out of range.
void check_options(const EngineOptions& options);

struct Engine::Impl {
    explicit Impl(const EngineOptions& options);

    Log log;
    EngineInfo info;
    VramMode vram_mode = VramMode::automatic;
    std::unique_ptr<device::Device> device;
    pack::Pack pack;
    std::unique_ptr<device::Graph> audio_encoder;
    std::unique_ptr<device::Graph> motion_generator;
    std::unique_ptr<device::Graph> stitch;  // where the pack has one
    // Of info.frames_in_flight frames a run where info.batched, else of one.
    std::unique_ptr<device::Graph> warp;
    std::unique_ptr<device::Graph> decoder;

    [[nodiscard]] const pack::Manifest& manifest() const { return pack.manifest(); }
};

}  // namespace newscaster
