// The stitch graph: driving keypoints corrected so that the crop's border stays where it was.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "device/device.h"
#include "pack/manifest.h"

namespace newscaster::motion {

// One stitch context. Use from one thread at a time.
class Stitcher {
  public:
    // Keypoints of one frame, [K*3] each; stitching replaces the driving ones.
    struct Frame {
        std::vector<float> source;
        std::span<float> driving;
    };

    // graph: for any number of frames a run. device must outlive the stitcher. Throws
    // Error(bad_pack) when the graph lacks a word.
    Stitcher(const pack::GraphSpec& spec, device::Device& device, device::Graph& graph);

    // Any number of frames. Throws Error(runtime) for other numbers of keypoints.
    void stitch(std::span<const Frame> frames);

  private:
    struct Port {
        device::BufferPtr host;
        device::BufferPtr device;
    };
    Port open_port(const device::TensorInfo& info);
    // Of entry `index` in the port's host memory.
    [[nodiscard]] std::span<float> entry(Port& port, size_t index, size_t values);
    void stitch_batch(std::span<const Frame> frames);

    device::Device& device_;
    std::unique_ptr<device::Stream> stream_;
    std::unique_ptr<device::Session> session_;
    size_t batch_ = 1;
    Port source_;
    Port driving_;
    Port stitched_;
};

}  // namespace newscaster::motion
