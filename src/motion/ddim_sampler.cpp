#include "motion/ddim_sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "newscaster/error.h"

namespace newscaster::motion {

namespace {

void require_tensor(const pack::GraphSpec& spec, const std::string& name, DType dtype,
                    const Shape& shape) {
    const auto input = spec.inputs.find(name);
    const auto output = spec.outputs.find(name);
    if (input == spec.inputs.end() && output == spec.outputs.end()) {
        throw Error(ErrorCode::bad_pack, fmt::format("{}: tensor \"{}\" is bound but not declared",
                                                     spec.model.file, name));
    }
    const pack::TensorSpec& found = input != spec.inputs.end() ? input->second : output->second;
    if (found.dtype != dtype || found.shape != shape) {
        throw Error(ErrorCode::bad_pack,
                    fmt::format("{}: tensor \"{}\": found {}{}, wanted {}{}", spec.model.file, name,
                                name_of(found.dtype), to_string(found.shape), name_of(dtype),
                                to_string(shape)));
    }
}

constexpr int64_t kMixed = 3;  // sample, noise, fresh noise

void fill(device::Buffer& buffer, std::span<const float> values) {
    const std::span<float> target = buffer.host_f32();
    if (target.size() != values.size()) {
        throw Error(ErrorCode::runtime,
                    fmt::format("motion generator input \"{}\": found {} values, wanted {}",
                                buffer.info().name, values.size(), target.size()));
    }
    std::copy(values.begin(), values.end(), target.begin());
}

}  // namespace

DdimSampler::DdimSampler(const pack::Manifest& manifest, device::Device& device,
                         device::Graph& graph, int64_t steps, double eta)
    : device_(device),
      plan_(ddim_plan(manifest.motion.diffusion, steps, eta)),
      stream_(device.make_stream()),
      session_(graph.make_session()) {
    const auto& spec = manifest.graph(pack::role::kMotionGenerator);
    const auto& motion = manifest.motion;
    const Shape window{1, motion.window_frames, motion.dims};
    latent_ = open_port(spec, "latent", DType::f32, window);
    previous_frame_ = open_port(spec, "previous_frame", DType::f32, {1, motion.dims});
    condition_ =
        open_port(spec, "condition", DType::f32, {1, motion.window_frames, motion.condition_dims});
    timestep_ = open_port(spec, "timestep", DType::i64, {1});
    noise_ = open_port(spec, "noise", DType::f32, window);
    sample_ = open_port(spec, "sample", DType::f32, window);
    if (eta > 0.0) fresh_.resize(static_cast<size_t>(motion.window_frames * motion.dims));
    mixer_ = device_.make_key_blender();
    if (mixer_ != nullptr) record_loop(window);
}

DdimSampler::Port DdimSampler::open_port(const pack::GraphSpec& spec, const std::string& word,
                                         DType dtype, const Shape& shape) {
    const std::string& name = spec.tensor(word);
    require_tensor(spec, name, dtype, shape);
    Port port = make_port({name, dtype, shape});
    session_->bind(name, port.device);
    return port;
}

DdimSampler::Port DdimSampler::make_port(const device::TensorInfo& info) {
    return {.host = device_.allocate(info, device::Location::pinned),
            .device = device_.allocate(info, device::Location::device)};
}

void DdimSampler::record_loop(const Shape& window) {
    const auto steps = static_cast<int64_t>(plan_.size());
    timesteps_ = make_port({"timesteps", DType::i64, {steps}});
    weights_ = make_port({"weights", DType::f32, {steps, kMixed}});
    if (!fresh_.empty()) {
        fresh_noises_ = make_port({"fresh noise", DType::f32, {steps, window[1], window[2]}});
    }
    for (size_t i = 0; i < plan_.size(); ++i) {
        std::memcpy(timesteps_.host->host_data() + i * sizeof(int64_t), &plan_[i].timestep,
                    sizeof(int64_t));
        const auto weights = weights_.host->host_f32().subspan(i * kMixed, kMixed);
        weights[0] = plan_[i].sample_weight;
        weights[1] = plan_[i].noise_weight;
        weights[2] = plan_[i].fresh_weight;
    }
    upload(timesteps_);
    upload(weights_);
    session_->prepare();
    stream_->synchronize();
    loop_ = device_.make_recording(*stream_, [this] { enqueue_loop(); });
}

void DdimSampler::enqueue_loop() {
    for (size_t i = 0; i < plan_.size(); ++i) {
        device_.copy_range(*timesteps_.device, i * sizeof(int64_t), *timestep_.device, 0,
                           sizeof(int64_t), *stream_);
        session_->run(*stream_);
        std::vector<device::KeyBlender::Entry> parts{{sample_.device.get(), 0},
                                                     {noise_.device.get(), 0}};
        if (plan_[i].fresh_weight > 0.0F) parts.push_back({fresh_noises_.device.get(), i});
        mixer_->mix(parts, {weights_.device.get(), i * kMixed, 1, 1}, {latent_.device.get(), 0},
                    *stream_);
    }
}

void DdimSampler::upload(Port& port) {
    device_.copy(*port.host, *port.device, *stream_);
}

void DdimSampler::download(Port& port) {
    device_.copy(*port.device, *port.host, *stream_);
}

std::span<const float> DdimSampler::sample(std::span<const float> latent,
                                           std::span<const float> previous_frame,
                                           std::span<const float> condition,
                                           const FreshNoise& fresh_noise) {
    fill(*latent_.host, latent);
    fill(*previous_frame_.host, previous_frame);
    fill(*condition_.host, condition);
    upload(previous_frame_);
    upload(condition_);
    if (loop_ == nullptr) {
        loop_on_host(fresh_noise);
        return sample_.host->host_f32();
    }
    const size_t count = latent.size();
    for (size_t i = 0; i < plan_.size(); ++i) {
        if (plan_[i].fresh_weight <= 0.0F) continue;
        fresh_noise(static_cast<uint32_t>(i + 1),
                    fresh_noises_.host->host_f32().subspan(i * count, count));
    }
    if (fresh_noises_.host != nullptr) upload(fresh_noises_);
    upload(latent_);
    loop_->replay(*stream_);
    download(sample_);
    stream_->synchronize();
    return sample_.host->host_f32();
}

void DdimSampler::loop_on_host(const FreshNoise& fresh_noise) {
    for (size_t number = 0; number < plan_.size(); ++number) {
        const DdimStep& step = plan_[number];
        std::memcpy(timestep_.host->host_data(), &step.timestep, sizeof(step.timestep));
        upload(timestep_);
        upload(latent_);
        session_->run(*stream_);
        download(sample_);
        download(noise_);
        stream_->synchronize();
        const std::span<const float> sample = sample_.host->host_f32();
        const std::span<const float> noise = noise_.host->host_f32();
        const std::span<float> next = latent_.host->host_f32();
        for (size_t i = 0; i < next.size(); ++i) {
            next[i] = sample[i] * step.sample_weight + noise[i] * step.noise_weight;
        }
        if (step.fresh_weight > 0.0F) {
            fresh_noise(static_cast<uint32_t>(number + 1), fresh_);
            for (size_t i = 0; i < next.size(); ++i) next[i] += fresh_[i] * step.fresh_weight;
        }
    }
}

}  // namespace newscaster::motion
