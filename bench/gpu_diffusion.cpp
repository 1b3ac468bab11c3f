#include <cmath>
#include <map>
#include <random>

#include "gpu_bench.h"
#include "motion/ddim_sampler.h"
#include "pack/pack.h"

namespace newscaster::bench {

namespace {

constexpr int kRepeats = 20;
constexpr float kConditionDeviation = 0.3F;

std::vector<float> normal(std::mt19937& random, int64_t count, float deviation) {
    std::normal_distribution<float> distribution(0.0F, deviation);
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) value = distribution(random);
    return values;
}

double cosine(std::span<const float> a, std::span<const float> b) {
    double ab = 0.0;
    double aa = 0.0;
    double bb = 0.0;
    for (size_t i = 0; i < a.size(); ++i) {
        ab += static_cast<double>(a[i]) * b[i];
        aa += static_cast<double>(a[i]) * a[i];
        bb += static_cast<double>(b[i]) * b[i];
    }
    return ab / std::sqrt(aa * bb);
}

}  // namespace

nlohmann::json measure_diffusion(const std::string& pack_folder, const std::string& provider) {
    const auto pack = pack::Pack::open(pack_folder);
    const auto& motion = pack.manifest().motion;
    const auto device = device::open_device(provider, {});
    std::mt19937 random(1);
    const auto latent = normal(random, motion.window_frames * motion.dims, 1.0F);
    const auto previous = normal(random, motion.dims, kConditionDeviation);
    const auto condition =
        normal(random, motion.window_frames * motion.condition_dims, kConditionDeviation);
    std::map<int, std::vector<float>> exact;  // in f32, by steps
    nlohmann::json rows = nlohmann::json::array();
    for (const auto precision : {device::Precision::f32, device::Precision::f16}) {
        const auto graph = pack.load_graph(*device, pack::role::kMotionGenerator, precision, 1);
        for (const int steps : {1, 2, 4, 10, 50}) {
            motion::DdimSampler sampler(pack.manifest(), *device, *graph, steps);
            std::vector<float> found;
            const double ms = median_ms(kRepeats, [&] {
                const auto window = sampler.sample(latent, previous, condition, {});
                found.assign(window.begin(), window.end());
            });
            nlohmann::json row{
                {"precision", device::name_of(precision)},
                {"steps", steps},
                {"ms", ms},
                {"motion_fps", 1000.0 * static_cast<double>(motion.window_frames) / ms}};
            if (precision == device::Precision::f32) {
                exact[steps] = found;
            } else {
                row["cosine_with_f32"] = cosine(found, exact.at(steps));
            }
            rows.push_back(std::move(row));
        }
    }
    return {{"pack", pack.manifest().name},
            {"device", device->info().name},
            {"runtime", device->info().runtime},
            {"window_frames", motion.window_frames},
            {"repeats", kRepeats},
            {"rows", rows}};
}

}  // namespace newscaster::bench
