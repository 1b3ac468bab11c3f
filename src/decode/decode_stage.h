// The decoder: warped features -> RGB face crop, by the pack's decoder graph.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>

#include "core/stage_types.h"
#include "device/device.h"
#include "device/frame_inputs.h"
#include "pack/manifest.h"

namespace newscaster::decode {

// One decoder context. Use from one thread at a time.
class DecodeStage {
  public:
    // sources: avatar tensors per source frame (see device::SourceTensors), which must outlive
    // the stage as device must; upstream: the warp stage's outputs, bound once and preferred
    // over an avatar tensor of the same name. Throws Error(bad_pack) for an input that nothing
    // provides or an image that is not f32 [1, 3, size, size].
    DecodeStage(const pack::GraphSpec& spec, device::Device& device, device::Graph& graph,
                const device::SourceTensors& sources,
                const std::map<std::string, device::BufferPtr>& upstream);

    // Draws the frame and waits for it; the result is planar RGB f32 [3, size, size] in 0..1, owned
    // by the stage and valid until the next run. Throws Error(runtime) when the frame's keypoints
    // or source frame do not fit.
    std::span<const float> run(const DrivingFrame& frame, device::Stream& stream);

  private:
    device::Device& device_;
    std::unique_ptr<device::Session> session_;
    device::FrameInputs inputs_;  // driving keypoints are optional here
    device::BufferPtr image_;
    device::BufferPtr image_host_;  // image_ itself where the CPU can read it
};

}  // namespace newscaster::decode
