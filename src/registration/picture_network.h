// A network that reads a square part of a picture and yields a few lists of numbers: the face
// detector and the landmark networks.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/stage_types.h"
#include "device/device.h"
#include "newscaster/registration.h"

namespace newscaster::registration {

// Use from one thread at a time.
class PictureNetwork {
  public:
    // Wants one input f32 [1, side, side, 3] and outputs with these numbers of elements. Throws
    // Error(bad_pack) naming the file. The device must outlive this object.
    PictureNetwork(device::Device& device, const std::filesystem::path& file,
                   const std::vector<size_t>& output_sizes);

    // The square of the picture, black beyond it, as `low` (black) to 1 (white). The outputs in the
    // order of output_sizes; valid until the next call.
    [[nodiscard]] std::vector<std::span<const float>> run(const RgbImage& picture,
                                                          const CropBox& square, float low);

    [[nodiscard]] int side() const { return side_; }

  private:
    device::Device& device_;
    std::unique_ptr<device::Stream> stream_;
    std::unique_ptr<device::Graph> graph_;
    std::unique_ptr<device::Session> session_;
    device::BufferPtr input_;
    std::vector<device::BufferPtr> outputs_;
    int side_ = 0;
};

}  // namespace newscaster::registration
