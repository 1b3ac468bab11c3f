// The pack's extractors: what a face crop looks like and how its head is posed.
#pragma once

#include <memory>
#include <vector>

#include "core/safetensors.h"
#include "core/stage_types.h"
#include "device/device.h"
#include "pack/pack.h"

namespace newscaster::registration {

struct FaceFeatures {
    std::vector<float> motion;               // [motion dims], manifest layout
    std::vector<float> canonical_keypoints;  // [K*3]
    TensorMap appearance;                    // outputs of appearance_extractor by tensor name
};

// Both graphs, compiled in f32. Use from one thread at a time.
class FaceExtractor {
  public:
    // Throws Error(bad_pack) when the pack lacks one of the graphs or the motion extractor yields
    // no motion or canonical keypoints. The device must outlive the extractor.
    FaceExtractor(const pack::Pack& pack, device::Device& device);

    // crop: any square picture; the graphs get their own size. Throw Error(runtime) when a graph
    // yields a value that is not finite. motion() leaves `appearance` empty.
    [[nodiscard]] FaceFeatures motion(const RgbImage& crop);
    [[nodiscard]] TensorMap appearance(const RgbImage& crop);

  private:
    struct Network {
        const pack::GraphSpec* spec = nullptr;
        std::unique_ptr<device::Graph> graph;
        std::unique_ptr<device::Session> session;
    };
    [[nodiscard]] Network load(const pack::Pack& pack, std::string_view role);
    // Runs on the crop; every f32 output by tensor name.
    [[nodiscard]] TensorMap run(const Network& network, const RgbImage& crop);

    device::Device& device_;
    std::unique_ptr<device::Stream> stream_;
    Network appearance_;
    Network motion_;
};

}  // namespace newscaster::registration
