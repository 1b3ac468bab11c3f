// The stitch graph: driving keypoints corrected so that the crop's border stays where it was.
#pragma once

#include <memory>
#include <vector>

#include "device/device.h"
#include "pack/manifest.h"

namespace newscaster::motion {

// One stitch context. Use from one thread at a time.
class Stitcher {
  public:
    // device must outlive the stitcher. Throws Error(bad_pack) when the graph lacks a word.
    Stitcher(const pack::GraphSpec& spec, device::Device& device, device::Graph& graph);

    // All three [K*3].
    [[nodiscard]] std::vector<float> stitched(const std::vector<float>& source,
                                              const std::vector<float>& driving);

  private:
    struct Port {
        device::BufferPtr host;
        device::BufferPtr device;
    };
    Port open_port(const std::string& name, const pack::TensorSpec& spec);
    void upload(Port& port, const std::vector<float>& values);

    device::Device& device_;
    std::unique_ptr<device::Stream> stream_;
    std::unique_ptr<device::Session> session_;
    Port source_;
    Port driving_;
    Port stitched_;
};

}  // namespace newscaster::motion
