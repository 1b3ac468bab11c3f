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
    // sources: avatar tensors per source frame (see warp::SourceTensors); upstream: the warp
    // stage's outputs, bound once. Throws Error(bad_pack) for an input that nothing provides.
    DecodeStage(const pack::GraphSpec& spec, device::Device& device, device::Graph& graph,
                const std::vector<std::map<std::string, device::BufferPtr>>& sources,
                const std::map<std::string, device::BufferPtr>& upstream);

    // Draws the frame; the result is planar RGB f32 [3, size, size] in 0..1, owned by the stage and
    // valid until the next run.
    std::span<const float> run(const DrivingFrame& frame, device::Stream& stream);

  private:
    void bind_source(int64_t source_frame);

    const pack::GraphSpec& spec_;
    const std::vector<std::map<std::string, device::BufferPtr>>& sources_;
    std::unique_ptr<device::Session> session_;
    device::BufferPtr driving_;
    device::BufferPtr image_;
    std::vector<std::string> source_inputs_;
    int64_t bound_source_ = -1;
};

}  // namespace newscaster::decode
