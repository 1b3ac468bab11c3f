// The loop that stays on the device against the loop on the host, with the bundled motion
// generator.
#include "motion/ddim_sampler.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "device/host_key_blender_test_util.h"
#include "newscaster/error.h"
#include "pack/pack.h"

namespace newscaster::motion {
namespace {

// Any device, without what the loop on the device needs.
class PlainDevice final : public ForwardingDevice {
  public:
    using ForwardingDevice::ForwardingDevice;
};

std::vector<float> numbers(std::mt19937& random, int64_t count) {
    std::normal_distribution<float> normal;
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) value = normal(random);
    return values;
}

// Two windows, one after the other.
std::vector<float> sampled(device::Device& device, double eta) {
    const auto pack =
        pack::Pack::open(std::filesystem::path(NEWSCASTER_SOURCE_DIR) / "packs/studio");
    const auto& motion = pack.manifest().motion;
    const auto graph =
        pack.load_graph(device, pack::role::kMotionGenerator, device::Precision::f32, 1);
    DdimSampler sampler(pack.manifest(), device, *graph, 4, eta);
    std::mt19937 random(7);
    std::vector<float> result;
    for (int window = 0; window < 2; ++window) {
        const auto latent = numbers(random, motion.window_frames * motion.dims);
        const auto previous = numbers(random, motion.dims);
        const auto condition = numbers(random, motion.window_frames * motion.condition_dims);
        const auto found =
            sampler.sample(latent, previous, condition, [&](uint32_t stream, auto noise) {
                std::mt19937 own(stream);
                const auto values = numbers(own, std::ssize(noise));
                std::ranges::copy(values, noise.begin());
            });
        result.insert(result.end(), found.begin(), found.end());
    }
    return result;
}

void expect_near(const std::vector<float>& found, const std::vector<float>& wanted) {
    ASSERT_EQ(found.size(), wanted.size());
    for (size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], wanted[i], 1e-4F) << i;
}

TEST(DdimSampler, TheLoopOnTheDeviceGivesWhatTheLoopOnTheHostGives) {
    for (const double eta : {0.0, 1.0}) {
        SCOPED_TRACE(eta);
        const auto plain = device::open_device("cpu", {});
        BlendingDevice blending(device::open_device("cpu", {}));
        expect_near(sampled(blending, eta), sampled(*plain, eta));
    }
}

TEST(DdimSampler, TheGpusLoopIsRepeatableAndGivesWhatTheHostGives) {
    std::unique_ptr<device::Device> gpu;
    try {
        gpu = device::open_device("cuda", {});
    } catch (const Error& error) {
        GTEST_SKIP() << error.what();
    }
    for (const double eta : {0.0, 1.0}) {
        SCOPED_TRACE(eta);
        PlainDevice plain(device::open_device("cuda", {}));
        const auto found = sampled(*gpu, eta);
        expect_near(found, sampled(plain, eta));
        EXPECT_EQ(found, sampled(*gpu, eta));
    }
}

}  // namespace
}  // namespace newscaster::motion
