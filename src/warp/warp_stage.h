// The warp: source features + keypoints -> what the decoder draws from, by the pack's warp graph.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/stage_types.h"
#include "device/device.h"
#include "device/frame_inputs.h"
#include "pack/manifest.h"

namespace newscaster::warp {

// One warp context. Use from one thread at a time; make one per concurrent frame.
class WarpStage {
  public:
    // device and sources must outlive the stage. Throws Error(bad_pack) when an input is
    // neither the driving keypoints nor a tensor that every source frame has.
    WarpStage(const pack::GraphSpec& spec, device::Device& device, device::Graph& graph,
              const device::SourceTensors& sources);

    // Enqueues the warp of one frame. The previous frame must be finished (DecodeStage::run waits
    // for it). Throws Error(runtime) when the frame's keypoints or source frame do not fit.
    void run(const DrivingFrame& frame, device::Stream& stream);

    // Output buffers by tensor name, the same objects for every run: bind them once downstream.
    [[nodiscard]] std::map<std::string, device::BufferPtr> outputs();

  private:
    std::unique_ptr<device::Session> session_;
    device::FrameInputs inputs_;
    std::vector<std::string> output_names_;
};

}  // namespace newscaster::warp
