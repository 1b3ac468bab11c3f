#include "pipeline/batch_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "newscaster/error.h"

namespace newscaster::pipeline {

namespace {

// The decoder's picture. Throws Error(bad_pack) when batches of it cannot be pasted.
device::TensorInfo image_of(const Engine::Impl& engine) {
    const auto& name = engine.manifest().graph(pack::role::kDecoder).tensor("image");
    const auto& outputs = engine.decoder->outputs();
    const auto image = std::ranges::find(outputs, name, &device::TensorInfo::name);
    const int64_t batch = engine.info.frames_in_flight;
    const bool there = image != outputs.end();
    const auto& shape = there ? image->shape : Shape{};
    const bool fits = there && image->dtype == DType::f32 && shape.size() == 4 &&
                      shape[0] == batch && shape[1] == 3 && shape[2] == shape[3];
    if (fits) return *image;
    throw Error(
        ErrorCode::bad_pack,
        fmt::format("decoder graph: output '{}': found {}{}, wanted f32[{},3,size,size]", name,
                    there ? name_of(image->dtype) : "nothing ", to_string(shape), batch));
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

BatchOutput::BatchOutput(const Engine::Impl& engine, const LoadedAvatar& avatar, FramePool& pool,
                         StageMeter& composite)
    : engine_(engine),
      avatar_(avatar),
      pool_(pool),
      composite_(composite),
      pastes_(avatar.paster(0) != nullptr),
      post_(engine.device->make_stream()) {
    auto& device = *engine.device;
    device::TensorInfo result = image_of(engine);
    if (pastes_) {
        for (int64_t source = 0; source < avatar.source_frames(); ++source) {
            entry_bytes_ = std::max(entry_bytes_, nv12_bytes(avatar.plan(source)->roi()));
        }
        result = {"boxes", DType::u8, {result.shape[0], static_cast<int64_t>(entry_bytes_)}};
    }
    for (auto& slot : slots_) {
        if (pastes_) slot.boxes_ = device.allocate(result, device::Location::device);
        slot.results_ = device.allocate(result, device::Location::pinned);
        for (auto& mark : slot.marks_) mark.event = device.make_event();
        (void)free_.push(&slot, {});
    }
    entry_bytes_ = slots_.front().results_->bytes() / static_cast<size_t>(result.shape[0]);
}

BatchOutput::~BatchOutput() {
    // Work in flight reads and writes the memory that goes now.
    try {
        post_->synchronize();
    } catch (const Error&) {  // the device failed: nothing is in flight
    }
}

BatchOutput::Slot* BatchOutput::take(const std::stop_token& stop) {
    const auto slot = free_.pop(stop);
    if (!slot) return nullptr;
    (*slot)->frames.clear();
    (*slot)->marked_ = 0;
    return *slot;
}

void BatchOutput::mark(Slot& slot, StageMeter* meter, device::Stream& stream) {
    auto& mark = slot.marks_.at(slot.marked_++);
    mark.meter = meter;
    engine_.device->record(*mark.event, stream);
}

void BatchOutput::mark(Slot& slot, StageMeter& meter, device::Stream& stream) {
    mark(slot, &meter, stream);
}

bool BatchOutput::send(Slot& slot, device::Buffer& crops, device::Stream& neural,
                       device::Event& crops_read, const std::stop_token& stop) {
    auto& device = *engine_.device;
    mark(slot, composite_, neural);
    device.wait(*post_, *slot.marks_[slot.marked_ - 1].event);
    device::Buffer& results = pastes_ ? *slot.boxes_ : crops;
    for (size_t i = 0; pastes_ && i < slot.frames.size(); ++i) {
        avatar_.paster(slot.frames[i].source_frame)
            ->paste(crops, static_cast<int64_t>(i), results, i * entry_bytes_, *post_);
    }
    device.copy_range(results, 0, *slot.results_, 0, slot.frames.size() * entry_bytes_, *post_);
    device.record(crops_read, *post_);
    mark(slot, nullptr, *post_);
    ++sent_;
    return busy_.push(&slot, stop);
}

void BatchOutput::record_times(const Slot& slot) {
    // Device clocks do not tell the time of day: spans are laid out backwards from now.
    auto end = Clock::now();
    for (size_t i = slot.marked_ - 1; i-- > 0;) {
        const double ms =
            engine_.device->elapsed_ms(*slot.marks_[i].event, *slot.marks_[i + 1].event);
        const auto begin = end - std::chrono::duration_cast<Clock::duration>(
                                     std::chrono::duration<double, std::milli>(ms));
        slot.marks_[i].meter->record(begin, end);
        end = begin;
    }
}

VideoFramePtr BatchOutput::complete(const Slot& slot, size_t entry) {
    const DrivingFrame& frame = slot.frames[entry];
    const auto plan = avatar_.plan(frame.source_frame);
    auto canvas = pool_.acquire(frame.source_frame, plan->background());
    const std::byte* result = slot.results_->host_data() + entry * entry_bytes_;
    if (pastes_) {
        splice(plan->roi(), result, canvas);
    } else {
        plan->paste({reinterpret_cast<const float*>(result), entry_bytes_ / sizeof(float)},
                    canvas.y(), canvas.stride(), canvas.uv(), canvas.stride());
    }
    return pool_.publish(std::move(canvas), frame.index);
}

void BatchOutput::finish(const Deliver& deliver, const std::stop_token& stop) {
    while (const auto slot = busy_.pop(stop)) {
        (*slot)->marks_[(*slot)->marked_ - 1].event->synchronize();
        --sent_;
        record_times(**slot);
        for (size_t i = 0; i < (*slot)->frames.size(); ++i) {
            VideoFramePtr picture;
            {
                const StageMeter::Scope scope(composite_);
                picture = complete(**slot, i);
            }
            if (!deliver((*slot)->frames[i].index, std::move(picture))) return;
        }
        if (!free_.push(*slot, stop)) return;
    }
}

}  // namespace newscaster::pipeline
