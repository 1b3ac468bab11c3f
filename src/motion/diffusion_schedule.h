// Noise schedule and DDIM time steps of the motion generator.
// Cosine schedule: Nichol & Dhariwal, "Improved Denoising Diffusion Probabilistic Models", 2021,
// eq. 17. DDIM: Song, Meng & Ermon, "Denoising Diffusion Implicit Models", 2020, eq. 12 and 16.
#pragma once

#include <cstdint>
#include <vector>

#include "pack/manifest.h"

namespace newscaster::motion {

// Cumulative products alpha_bar[t], t = 0 .. timesteps-1, falling from about 1 to about 0.
[[nodiscard]] std::vector<double> cosine_alpha_bars(int64_t timesteps, double cosine_s);

// Time steps from high to low for `steps` evaluations: the pack's table, else
// linspace(-1, timesteps - 1, steps + 1) cut to integers, without its last entry -1.
// Throws Error(bad_input) unless 1 <= steps <= timesteps.
[[nodiscard]] std::vector<int64_t> ddim_timesteps(const pack::DiffusionSpec& spec, int64_t steps);

// One evaluation of the network at `timestep` and what follows it:
// next latent = sample * sample_weight + noise * noise_weight + fresh noise * fresh_weight.
// The last one has weights 1, 0 and 0: its sample is the result.
struct DdimStep {
    int64_t timestep = 0;
    float sample_weight = 1.0F;
    float noise_weight = 0.0F;
    float fresh_weight = 0.0F;
};
// eta: 0 = deterministic, 1 = as much fresh noise as the forward process has.
[[nodiscard]] std::vector<DdimStep> ddim_plan(const pack::DiffusionSpec& spec, int64_t steps,
                                              double eta = 0.0);

}  // namespace newscaster::motion
