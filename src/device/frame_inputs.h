// What the renderer's graphs read per frame: the source frame's cached tensors and the driving
// keypoints. Shared by the warp and the decoder, which differ only in what else they read.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/stage_types.h"
#include "device/device.h"

namespace newscaster::device {

// Avatar tensors on the device, one set per source frame; shared by all renderers, read-only.
using SourceTensors = std::vector<std::map<std::string, BufferPtr>>;

// Throws Error(runtime) unless the frame has `values` keypoint values, naming both numbers.
void require_keypoints(const DrivingFrame& frame, size_t values);

// Tensors of the frame's source frame. Throws Error(runtime) when there is no such source frame.
[[nodiscard]] const SourceTensors::value_type& tensors_of(const SourceTensors& sources,
                                                          int64_t source_frame);

// Whether every source frame has the tensor.
[[nodiscard]] bool have_tensor(const SourceTensors& sources, const std::string& name);

// Feeds one session. Use from one thread at a time.
class FrameInputs {
  public:
    // All three must outlive this object.
    FrameInputs(Device& device, Session& session, const SourceTensors& sources);

    // The graph's input that takes the driving keypoints, at most one.
    void set_driving_keypoints(const TensorInfo& input);
    [[nodiscard]] bool takes_keypoints() const { return driving_ != nullptr; }

    // An input that the avatar provides; false when a source frame lacks that tensor.
    [[nodiscard]] bool add_source(const std::string& input);

    // Binds the frame's source tensors and enqueues the copy of its keypoints. The previous run of
    // the session must be finished. Throws Error(runtime) when the keypoints or the source frame do
    // not fit.
    void feed(const DrivingFrame& frame, Stream& stream);

  private:
    void bind_source(int64_t source_frame);

    Device& device_;
    Session& session_;
    const SourceTensors& sources_;
    std::vector<std::string> source_inputs_;
    BufferPtr driving_host_;  // written by the CPU, copied to driving_
    BufferPtr driving_;
    int64_t bound_source_ = -1;
};

}  // namespace newscaster::device
