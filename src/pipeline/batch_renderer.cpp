#include "pipeline/batch_renderer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <utility>

#include "newscaster/error.h"

namespace newscaster::pipeline {

namespace {

// How long a batch waits for its next frame before it runs with those it has. Motion comes in
// windows of many frames, so this matters at the end of a window only.
constexpr auto kPatience = std::chrono::milliseconds(2);

void require_images(const device::TensorInfo& image, int64_t batch) {
    const auto& shape = image.shape;
    const bool fits = image.dtype == DType::f32 && shape.size() == 4 && shape[0] == batch &&
                      shape[1] == 3 && shape[2] == shape[3];
    if (fits) return;
    throw Error(ErrorCode::bad_pack,
                fmt::format("decoder graph: output '{}': found {}{}, wanted f32[{},3,size,size]",
                            image.name, name_of(image.dtype), to_string(shape), batch));
}

size_t nv12_bytes(const Box& roi) {
    return static_cast<size_t>(roi.width()) * static_cast<size_t>(roi.height()) * 3 / 2;
}

// Rows of a packed box into a picture.
void splice(const Box& roi, const std::byte* nv12, FramePool::Slot& canvas) {
    const auto width = static_cast<size_t>(roi.width());
    const int64_t stride = canvas.stride();
    for (int row = roi.y0; row < roi.y1; ++row, nv12 += width) {
        std::memcpy(canvas.y() + row * stride + roi.x0, nv12, width);
    }
    for (int row = roi.y0 / 2; row < roi.y1 / 2; ++row, nv12 += width) {
        std::memcpy(canvas.uv() + row * stride + roi.x0, nv12, width);
    }
}

}  // namespace

struct BatchRenderer::Context {
    Context(const Engine::Impl& engine, const LoadedAvatar& avatar, int64_t batch,
            size_t paste_bytes)
        : warp(engine.warp->make_session()),
          decoder(engine.decoder->make_session()),
          inputs(*engine.device, avatar.sources(), batch),
          crops_read(engine.device->make_event()) {
        const auto& warp_spec = engine.manifest().graph(pack::role::kWarp);
        const auto& decoder_spec = engine.manifest().graph(pack::role::kDecoder);
        std::map<std::string, device::BufferPtr> warped;
        inputs.attach(warp_spec, *engine.warp, *warp, {});
        for (const auto& output : engine.warp->outputs()) {
            warped[output.name] = warp->buffer(output.name);
        }
        inputs.attach(decoder_spec, *engine.decoder, *decoder, warped);
        crops = decoder->buffer(decoder_spec.tensor("image"));
        require_images(crops->info(), batch);
        if (paste_bytes == 0) return;
        boxes = engine.device->allocate(
            {"boxes", DType::u8, {batch, static_cast<int64_t>(paste_bytes)}},
            device::Location::device);
    }

    std::unique_ptr<device::Session> warp;
    std::unique_ptr<device::Session> decoder;
    BatchInputs inputs;
    device::BufferPtr crops;
    device::BufferPtr boxes;  // pasted, NV12; where the device pastes
    std::unique_ptr<device::Event> crops_read;
};

struct BatchRenderer::Slot {
    std::vector<DrivingFrame> frames;
    device::BufferPtr keypoints;
    device::BufferPtr results;  // boxes or crops
    std::unique_ptr<device::Event> began;
    std::unique_ptr<device::Event> warped;
    std::unique_ptr<device::Event> drawn;
    std::unique_ptr<device::Event> done;
};

BatchRenderer::BatchRenderer(const Engine::Impl& engine, const LoadedAvatar& avatar,
                             FramePool& pool, Meters meters)
    : engine_(engine),
      avatar_(avatar),
      pool_(pool),
      meters_(meters),
      batch_(engine.info.frames_in_flight),
      pastes_(avatar.paster(0) != nullptr),
      neural_(engine.device->make_stream()),
      post_(engine.device->make_stream()) {
    auto& device = *engine.device;
    for (int64_t source = 0; pastes_ && source < avatar.source_frames(); ++source) {
        entry_bytes_ = std::max(entry_bytes_, nv12_bytes(avatar.plan(source)->roi()));
    }
    for (auto& context : contexts_) {
        context = std::make_unique<Context>(engine, avatar, batch_, entry_bytes_);
    }
    const Context& any = *contexts_.front();
    const device::BufferPtr& result = pastes_ ? any.boxes : any.crops;
    entry_bytes_ = result->bytes() / static_cast<size_t>(batch_);
    for (auto& slot : slots_) {
        slot = std::make_unique<Slot>();
        slot->keypoints = any.inputs.make_keypoints();
        slot->results = device.allocate(result->info(), device::Location::pinned);
        for (auto* event : {&slot->began, &slot->warped, &slot->drawn, &slot->done}) {
            *event = device.make_event();
        }
        (void)free_.push(slot.get(), {});
    }
}

BatchRenderer::~BatchRenderer() {
    // Work in flight reads and writes the memory that goes now.
    for (auto* stream : {neural_.get(), post_.get()}) {
        try {
            stream->synchronize();
        } catch (const Error&) {  // the device failed: nothing is in flight
        }
    }
}

std::vector<DrivingFrame> BatchRenderer::gather(BoundedQueue<DrivingFrame>& jobs,
                                                const std::stop_token& stop) const {
    std::vector<DrivingFrame> frames;
    auto next = jobs.pop(stop);
    while (next) {
        frames.push_back(std::move(*next));
        if (std::ssize(frames) == batch_) break;
        next = jobs.pop_until(stop, Clock::now() + kPatience);
    }
    return frames;
}

void BatchRenderer::draw(BoundedQueue<DrivingFrame>& jobs, const std::stop_token& stop) {
    for (size_t number = 0;; ++number) {
        const auto slot = free_.pop(stop);
        if (!slot) return;
        (*slot)->frames = gather(jobs, stop);
        if ((*slot)->frames.empty() || stop.stop_requested()) break;
        enqueue(*contexts_[number % kContexts], **slot);
        if (!busy_.push(*slot, stop)) return;
    }
    busy_.close();
}

void BatchRenderer::enqueue(Context& context, Slot& slot) {
    auto& device = *engine_.device;
    device.wait(*neural_, *context.crops_read);
    device.record(*slot.began, *neural_);
    context.inputs.feed(slot.frames, *slot.keypoints, *neural_);
    context.warp->run(*neural_);
    device.record(*slot.warped, *neural_);
    context.decoder->run(*neural_);
    device.record(*slot.drawn, *neural_);

    device.wait(*post_, *slot.drawn);
    device::Buffer& results = pastes_ ? *context.boxes : *context.crops;
    for (size_t i = 0; pastes_ && i < slot.frames.size(); ++i) {
        avatar_.paster(slot.frames[i].source_frame)
            ->paste(*context.crops, static_cast<int64_t>(i), results, i * entry_bytes_, *post_);
    }
    device.copy_range(results, 0, *slot.results, 0, slot.frames.size() * entry_bytes_, *post_);
    device.record(*context.crops_read, *post_);
    device.record(*slot.done, *post_);
}

void BatchRenderer::record_times(const Slot& slot) {
    auto& device = *engine_.device;
    const auto span = [&](device::Event& from, device::Event& to) {
        return std::chrono::duration_cast<Clock::duration>(
            std::chrono::duration<double, std::milli>(device.elapsed_ms(from, to)));
    };
    // Device clocks do not tell the time of day: spans are laid out backwards from now.
    const auto done = Clock::now();
    const auto drawn = done - span(*slot.drawn, *slot.done);
    const auto warped = drawn - span(*slot.warped, *slot.drawn);
    meters_.warp.record(warped - span(*slot.began, *slot.warped), warped);
    meters_.decode.record(warped, drawn);
    meters_.composite.record(drawn, done);
}

VideoFramePtr BatchRenderer::complete(const Slot& slot, size_t entry) {
    const DrivingFrame& frame = slot.frames[entry];
    const auto plan = avatar_.plan(frame.source_frame);
    auto canvas = pool_.acquire(frame.source_frame, plan->background());
    const std::byte* result = slot.results->host_data() + entry * entry_bytes_;
    if (pastes_) {
        splice(plan->roi(), result, canvas);
    } else {
        plan->paste({reinterpret_cast<const float*>(result), entry_bytes_ / sizeof(float)},
                    canvas.y(), canvas.stride(), canvas.uv(), canvas.stride());
    }
    return pool_.publish(std::move(canvas), frame.index);
}

void BatchRenderer::finish(const Deliver& deliver, const std::stop_token& stop) {
    while (const auto slot = busy_.pop(stop)) {
        (*slot)->done->synchronize();
        record_times(**slot);
        for (size_t i = 0; i < (*slot)->frames.size(); ++i) {
            VideoFramePtr picture;
            {
                const StageMeter::Scope scope(meters_.composite);
                picture = complete(**slot, i);
            }
            if (!deliver((*slot)->frames[i].index, std::move(picture))) return;
        }
        if (!free_.push(*slot, stop)) return;
    }
}

}  // namespace newscaster::pipeline
