// The decoder: warped features -> RGB face crop, by the pack's decoder graph.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/stage_types.h"
#include "device/device.h"
#include "pack/manifest.h"

namespace newscaster::decode {

// One decoder context. Use from one thread at a time.
class DecodeStage {
  public:
    // sources: avatar tensors per source frame (see warp::SourceTensors), which must outlive the
    // stage as device must; upstream: the warp stage's outputs, bound once and preferred
    // over an avatar tensor of the same name. Throws Error(bad_pack) for an input that nothing
    // provides or an image that is not f32 [1, 3, size, size].
    DecodeStage(const pack::GraphSpec& spec, device::Device& device, device::Graph& graph,
                const std::vector<std::map<std::string, device::BufferPtr>>& sources,
                const std::map<std::string, device::BufferPtr>& upstream);

    // Draws the frame and waits for it; the result is planar RGB f32 [3, size, size] in 0..1, owned
    // by the stage and valid until the next run. Throws Error(runtime) when the frame's keypoints
    // or source frame do not fit.
    std::span<const float> run(const DrivingFrame& frame, device::Stream& stream);

  private:
    void bind_source(int64_t source_frame);

    device::Device& device_;
    const std::vector<std::map<std::string, device::BufferPtr>>& sources_;
    std::unique_ptr<device::Session> session_;
    device::BufferPtr driving_host_;  // set when the graph takes driving keypoints
    device::BufferPtr driving_;
    device::BufferPtr image_;
    device::BufferPtr image_host_;  // image_ itself where the CPU can read it
    std::vector<std::string> source_inputs_;
    int64_t bound_source_ = -1;
};

}  // namespace newscaster::decode
