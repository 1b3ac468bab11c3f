// The warp's outputs of a frame in between, blended from those of keyframes.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/keypoint_blend.h"
#include "device/device.h"

namespace newscaster::warp {

// Values of the warp's outputs by tensor name, on the CPU.
using Latents = std::map<std::string, std::vector<float>>;

// Use from one thread at a time.
class LatentBlender {
  public:
    // outputs: WarpStage::outputs(); device must outlive this object. Throws Error(bad_pack) for an
    // output that is not f32.
    LatentBlender(device::Device& device, const std::map<std::string, device::BufferPtr>& outputs);

    // What the outputs hold, waiting for the warp that writes them.
    [[nodiscard]] Latents read(device::Stream& stream) const;

    // Writes the blend into the outputs, as if the warp had run. One entry of `keys` per key of
    // `shares`. An output whose last two of four or more axes lie over the crop is blended place by
    // place, any other as a whole. The decoder must not be reading the outputs.
    void write(const std::vector<const Latents*>& keys, const ShareMaps& shares,
               device::Stream& stream) const;

  private:
    struct Output {
        device::BufferPtr buffer;
        device::BufferPtr host;  // buffer itself where the CPU can reach it
    };

    device::Device& device_;
    std::map<std::string, Output> outputs_;
};

}  // namespace newscaster::warp
