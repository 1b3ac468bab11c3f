// The renderer in f32 against the Python reference (training/reference/reference_image.py).
#include <gtest/gtest.h>

#include <cmath>

#include "avatar/avatar.h"
#include "core/safetensors.h"
#include "decode/decode_stage.h"
#include "device/device.h"
#include "media/image.h"
#include "pack/pack.h"
#include "warp/warp_stage.h"

namespace newscaster {
namespace {

namespace fs = std::filesystem;

constexpr double kWantedDb = 50.0;

// Planar RGB in 0..1 against an 8-bit picture.
double psnr_db(std::span<const float> crop, const RgbImage& golden) {
    const size_t plane = crop.size() / 3;
    double sum = 0.0;
    for (size_t channel = 0; channel < 3; ++channel) {
        for (size_t i = 0; i < plane; ++i) {
            const double error = static_cast<double>(crop[channel * plane + i]) -
                                 golden.pixels[i * 3 + channel] / 255.0;
            sum += error * error;
        }
    }
    return -10.0 * std::log10(sum / static_cast<double>(crop.size()));
}

TEST(GoldenImage, CropsEqualTheReference) {
    const fs::path root = NEWSCASTER_SOURCE_DIR;
    const auto pack = pack::Pack::open(root / "packs/studio");
    const auto& manifest = pack.manifest();
    const auto avatar = avatar::load_avatar(root / "avatars/anna", manifest, pack.avatar_key());
    const auto golden = read_safetensors(root / "tests/golden/speech.safetensors");
    const auto device = device::open_device("cpu", {});
    const auto stream = device->make_stream();

    device::SourceTensors sources(1);
    for (const auto& [name, tensor] : avatar.tensors) {
        sources[0][name] = device::upload(*device, *stream, name, tensor);
    }
    const auto load = [&](std::string_view role) {
        return pack.load_graph(*device, role, device::Precision::f32, 1);
    };
    const auto warp_graph = load(pack::role::kWarp);
    const auto decoder_graph = load(pack::role::kDecoder);
    warp::WarpStage warp(manifest.graph(pack::role::kWarp), *device, *warp_graph, sources);
    decode::DecodeStage decoder(manifest.graph(pack::role::kDecoder), *device, *decoder_graph,
                                sources, warp.outputs());

    const Tensor& keypoints = golden.at("keypoints");
    for (const int64_t row : {5, 21}) {
        const auto values = keypoints.row(row);
        const DrivingFrame frame{
            .index = row, .source_frame = 0, .keypoints = {values.begin(), values.end()}};
        warp.run(frame, *stream);
        const auto crop = decoder.run(frame, *stream);
        const auto picture =
            media::read_image(root / "tests/golden" / ("crop_" + std::to_string(row) + ".png"));
        ASSERT_EQ(crop.size(), picture.pixels.size());
        EXPECT_GT(psnr_db(crop, picture), kWantedDb) << "row " << row;
    }
}

}  // namespace
}  // namespace newscaster
