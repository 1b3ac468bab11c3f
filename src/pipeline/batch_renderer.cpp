#include "pipeline/batch_renderer.h"

#include <map>
#include <utility>

#include "newscaster/error.h"

namespace newscaster::pipeline {

struct BatchRenderer::Context {
    Context(const Engine::Impl& engine, const LoadedAvatar& avatar)
        : warp(engine.warp->make_session()),
          decoder(engine.decoder->make_session()),
          inputs(*engine.device, avatar.sources(), engine.info.frames_in_flight),
          crops_read(engine.device->make_event()) {
        const auto& warp_spec = engine.manifest().graph(pack::role::kWarp);
        const auto& decoder_spec = engine.manifest().graph(pack::role::kDecoder);
        std::map<std::string, device::BufferPtr> warped;
        inputs.attach(warp_spec, *engine.warp, *warp, {});
        inputs.require_keypoints();
        for (const auto& output : engine.warp->outputs()) {
            warped[output.name] = warp->buffer(output.name);
        }
        inputs.attach(decoder_spec, *engine.decoder, *decoder, warped);
        crops = decoder->buffer(decoder_spec.tensor("image"));
        warp->prepare();
        decoder->prepare();
    }

    std::unique_ptr<device::Session> warp;
    std::unique_ptr<device::Session> decoder;
    BatchInputs inputs;
    device::BufferPtr crops;
    std::unique_ptr<device::Event> crops_read;
};

BatchRenderer::BatchRenderer(const Engine::Impl& engine, const LoadedAvatar& avatar,
                             BatchOutput& output, Meters meters)
    : engine_(engine), output_(output), meters_(meters), neural_(engine.device->make_stream()) {
    for (auto& context : contexts_) context = std::make_unique<Context>(engine, avatar);
}

BatchRenderer::~BatchRenderer() {
    // Work in flight reads and writes the memory that goes now.
    try {
        neural_->synchronize();
    } catch (const Error&) {  // the device failed: nothing is in flight
    }
}

void BatchRenderer::draw(BoundedQueue<DrivingFrame>& jobs, const std::stop_token& stop) {
    const auto full = [&](const std::vector<DrivingFrame>& frames) {
        return std::ssize(frames) == engine_.info.frames_in_flight;
    };
    for (size_t number = 0;; ++number) {
        BatchOutput::Slot* slot = output_.take(stop);
        if (slot == nullptr) return;
        slot->frames = gather_batch(jobs, output_, full, stop);
        if (slot->frames.empty() || stop.stop_requested()) break;
        if (!enqueue(*contexts_[number % kContexts], *slot, stop)) return;
    }
    output_.close();
}

bool BatchRenderer::enqueue(Context& context, BatchOutput::Slot& slot,
                            const std::stop_token& stop) {
    engine_.device->wait(*neural_, *context.crops_read);
    output_.mark(slot, meters_.warp, *neural_);
    context.inputs.feed(slot.frames, *neural_);
    context.warp->run(*neural_);
    output_.mark(slot, meters_.decode, *neural_);
    context.decoder->run(*neural_);
    return output_.send(slot, *context.crops, *neural_, *context.crops_read, stop);
}

}  // namespace newscaster::pipeline
