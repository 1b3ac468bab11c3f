#include "motion/diffusion_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "newscaster/error.h"

namespace newscaster::motion {

namespace {

// Nichol & Dhariwal clip beta at 0.999 to avoid a singularity at the end.
constexpr double kMaxBeta = 0.999;

}  // namespace

std::vector<double> cosine_alpha_bars(int64_t timesteps, double cosine_s) {
    const auto signal = [&](int64_t i) {
        const double t = static_cast<double>(i) / static_cast<double>(timesteps);
        const double c = std::cos((t + cosine_s) / (1.0 + cosine_s) * std::numbers::pi / 2.0);
        return c * c;
    };
    std::vector<double> alpha_bars;
    alpha_bars.reserve(static_cast<size_t>(timesteps));
    double product = 1.0;
    double previous = signal(0);
    for (int64_t i = 1; i <= timesteps; ++i) {
        const double current = signal(i);
        const double beta = std::clamp(1.0 - current / previous, 0.0, kMaxBeta);
        product *= 1.0 - beta;
        alpha_bars.push_back(product);
        previous = current;
    }
    return alpha_bars;
}

std::vector<int64_t> ddim_timesteps(const pack::DiffusionSpec& spec, int64_t steps) {
    if (steps < 1 || steps > spec.timesteps) {
        throw Error(ErrorCode::bad_input, fmt::format("diffusion steps: found {}, wanted 1 to {}",
                                                      steps, spec.timesteps));
    }
    if (const auto table = spec.step_tables.find(steps); table != spec.step_tables.end()) {
        return table->second;
    }
    const auto count = static_cast<double>(steps);
    const double stride = static_cast<double>(spec.timesteps) / count;
    std::vector<int64_t> timesteps{spec.timesteps - 1};
    for (int64_t i = steps - 1; i > 0; --i) {
        timesteps.push_back(static_cast<int64_t>(-1.0 + static_cast<double>(i) * stride));
    }
    return timesteps;
}

std::vector<DdimStep> ddim_plan(const pack::DiffusionSpec& spec, int64_t steps, double eta) {
    const auto alpha_bars = cosine_alpha_bars(spec.timesteps, spec.cosine_s);
    const auto timesteps = ddim_timesteps(spec, steps);
    std::vector<DdimStep> plan;
    for (size_t i = 0; i < timesteps.size(); ++i) {
        DdimStep step{.timestep = timesteps[i]};
        if (i + 1 < timesteps.size()) {
            const double now = alpha_bars.at(static_cast<size_t>(timesteps[i]));
            const double next = alpha_bars.at(static_cast<size_t>(timesteps[i + 1]));
            const double variance = eta * eta * (1.0 - now / next) * (1.0 - next) / (1.0 - now);
            step.sample_weight = static_cast<float>(std::sqrt(next));
            step.noise_weight = static_cast<float>(std::sqrt(std::max(0.0, 1.0 - next - variance)));
            step.fresh_weight = static_cast<float>(std::sqrt(variance));
        }
        plan.push_back(step);
    }
    return plan;
}

}  // namespace newscaster::motion
