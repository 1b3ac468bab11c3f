// Diffusion sampling (DDIM) of one motion window.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/tensor.h"
#include "device/device.h"
#include "device/key_blender.h"
#include "motion/diffusion_schedule.h"
#include "pack/manifest.h"

namespace newscaster::motion {

// Owns one session of the motion_generator graph with its bound buffers. Where the device can mix
// tensors (device::KeyBlender) the whole loop is one recording there: latents, conditions and the
// schedule stay on the device. Use from one thread at a time.
class DdimSampler {
  public:
    // Fills [window, dims] with N(0,1) for noise stream `stream` (1, 2, ... for steps 0, 1, ...).
    using FreshNoise = std::function<void(uint32_t stream, std::span<float> window)>;

    // Throws Error(bad_input) for steps out of range, Error(bad_pack) when the graph's tensors do
    // not fit the manifest's window and dims. `device` must outlive the sampler.
    DdimSampler(const pack::Manifest& manifest, device::Device& device, device::Graph& graph,
                int64_t steps, double eta = 0.0);

    // latent: [window, dims] N(0,1); previous_frame: [dims], the normalised frame before the
    // window; condition: [window, condition_dims]. Returns the window [window, dims] in normalised
    // units, valid until the next call. fresh_noise is asked only when eta is above 0.
    [[nodiscard]] std::span<const float> sample(std::span<const float> latent,
                                                std::span<const float> previous_frame,
                                                std::span<const float> condition,
                                                const FreshNoise& fresh_noise);

  private:
    // A graph tensor on the device and its host-addressable twin.
    struct Port {
        device::BufferPtr host;
        device::BufferPtr device;
    };
    Port open_port(const pack::GraphSpec& spec, const std::string& word, DType dtype,
                   const Shape& shape);
    Port make_port(const device::TensorInfo& info);
    void upload(Port& port);
    void download(Port& port);
    // On devices that mix: the schedule as tables, and the loop.
    void record_loop(const Shape& window);
    void enqueue_loop();
    void loop_on_host(const FreshNoise& fresh_noise);

    device::Device& device_;
    std::vector<DdimStep> plan_;
    std::unique_ptr<device::Stream> stream_;
    std::unique_ptr<device::Session> session_;
    Port latent_;
    Port previous_frame_;
    Port condition_;
    Port timestep_;
    Port noise_;
    Port sample_;
    std::vector<float> fresh_;  // [window, dims] when eta is above 0

    std::unique_ptr<device::KeyBlender> mixer_;
    std::unique_ptr<device::Recording> loop_;  // where there is a mixer
    Port timesteps_;                           // [steps]
    Port weights_;                             // [steps, 3]: of sample, noise and fresh noise
    Port fresh_noises_;                        // [steps, window, dims] when eta is above 0
};

}  // namespace newscaster::motion
