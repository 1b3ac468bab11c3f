// A model pack on disk: manifest, constants, graph files; and its verification.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/log.h"
#include "core/safetensors.h"
#include "device/device.h"
#include "pack/manifest.h"

namespace newscaster::pack {

// A graph's file, and the extents of its inputs for a batch.
struct GraphSource {
    std::filesystem::path file;
    std::map<std::string, Shape> input_shapes;
};

class Pack {
  public:
    // Reads pack.json and the constants, checks their hash, that every graph file exists, and that
    // constants have the shapes the manifest implies. Graph contents are hashed when they are
    // loaded. Throws Error(bad_pack).
    static Pack open(const std::filesystem::path& folder);

    [[nodiscard]] const Manifest& manifest() const { return manifest_; }
    [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }
    [[nodiscard]] const std::string& avatar_key() const { return avatar_key_; }
    // f32 constant by name; throws Error(bad_pack) when absent.
    [[nodiscard]] const Tensor& constant(const std::string& name) const;

    // Where a role's graph is and what it takes; as load_graph, but nothing is read.
    [[nodiscard]] GraphSource graph_source(std::string_view role, device::Precision precision,
                                           int64_t batch) const;

    // Compiles one role at the wished precision: the variant where the pack has one, else the model
    // when the pack allows that precision; otherwise Error(device_unavailable) listing what it
    // offers. A file whose sha256 differs from the manifest, or whose signature does not match, is
    // never loaded: Error(bad_pack).
    // batch: frames that one run takes; replaces an extent of 1 along every input's first axis.
    [[nodiscard]] std::unique_ptr<device::Graph> load_graph(device::Device& device,
                                                            std::string_view role,
                                                            device::Precision precision,
                                                            int concurrency,
                                                            int64_t batch = 1) const;

    // Whether the role's graph may run at this precision.
    [[nodiscard]] bool offers(std::string_view role, device::Precision precision) const;

    // Best precision of `device` that every one of `roles` allows.
    [[nodiscard]] device::Precision pick_precision(
        const device::DeviceInfo& device, const std::vector<std::string_view>& roles) const;

    // Full check: every file's sha256, every graph's tensor names, types and shapes against the
    // manifest. Returns one line per fault; empty = sound.
    [[nodiscard]] std::vector<std::string> verify(device::Device& device) const;

  private:
    Pack() = default;

    [[nodiscard]] const GraphFile& file_of(const GraphSpec& graph, std::string_view role,
                                           const std::string& precision) const;

    std::filesystem::path folder_;
    Manifest manifest_;
    std::string avatar_key_;
    TensorMap constants_;
};

}  // namespace newscaster::pack
