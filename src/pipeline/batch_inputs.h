// What the renderer's graphs read for a batch of frames: source tensors and driving keypoints, one
// entry per frame along the first axis.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/stage_types.h"
#include "device/device.h"
#include "device/frame_inputs.h"
#include "pack/manifest.h"

namespace newscaster::pipeline {

// The inputs of a warp and a decoder session, filled once per batch and shared by both. Use from
// one thread at a time.
class BatchInputs {
  public:
    // device and sources must outlive this object.
    BatchInputs(device::Device& device, const device::SourceTensors& sources, int64_t batch);

    // Binds every input of `graph` that is no output of an earlier one (`upstream`). Throws
    // Error(bad_pack) for an input that nothing provides or that has no entry per frame.
    void attach(const pack::GraphSpec& spec, const device::Graph& graph, device::Session& session,
                const std::map<std::string, device::BufferPtr>& upstream);

    // Throws Error(bad_pack) when no graph takes the driving keypoints.
    void require_keypoints() const;

    // Enqueues the copies of 1 .. batch frames; entries beyond them keep what they hold. Waits for
    // the copies of the call before. Throws Error(runtime) when the frames' keypoints or source
    // frames do not fit.
    void feed(std::span<const DrivingFrame> frames, device::Stream& stream);

  private:
    device::BufferPtr buffer_for(const device::TensorInfo& input);

    device::Device& device_;
    const device::SourceTensors& sources_;
    const int64_t batch_;
    device::BufferPtr driving_;                        // where a graph takes keypoints
    device::BufferPtr keypoints_;                      // the same, page-locked
    std::unique_ptr<device::Event> copied_;            // keypoints_ may be written again
    std::map<std::string, device::BufferPtr> inputs_;  // by source tensor
    std::vector<int64_t> held_;                        // source frame of each entry, -1 = none
};

}  // namespace newscaster::pipeline
