#include "pipeline/batch_cadence.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <utility>

#include "motion/cadence_plan.h"
#include "newscaster/error.h"
#include "pipeline/batch_renderer.h"

namespace newscaster::pipeline {

namespace {

using device::KeyBlender;
using motion::CadencePlanner;

static_assert(CadencePlanner::kBlendSources <= KeyBlender::kMostParts);

constexpr size_t kPlacedRank = 4;  // [batch, channels, height, width] and above

size_t entry_bytes(const device::Buffer& buffer) {
    return buffer.bytes() / static_cast<size_t>(buffer.info().shape.front());
}

std::unique_ptr<KeyBlender> make_blender(const Engine::Impl& engine) {
    auto blender = engine.device->make_key_blender();
    if (blender != nullptr) return blender;
    throw Error(ErrorCode::bad_input,
                fmt::format("a stride other than 1 and cadence plans need a batch size of 1 on {}, "
                            "found {}",
                            engine.info.provider, engine.info.frames_in_flight));
}

}  // namespace

// The warp, and in mode frame the decoder behind it.
struct BatchCadence::KeyContext {
    KeyContext(const Engine::Impl& engine, const LoadedAvatar& avatar, StrideMode mode)
        : warp(engine.warp->make_session()),
          inputs(*engine.device, avatar.sources(), engine.info.frames_in_flight) {
        inputs.attach(engine.manifest().graph(pack::role::kWarp), *engine.warp, *warp, {});
        inputs.require_keypoints();
        std::map<std::string, device::BufferPtr> warped;
        for (const auto& output : engine.warp->outputs()) {
            warped[output.name] = warp->buffer(output.name);
            if (mode == StrideMode::warp) results.push_back(warped[output.name]);
        }
        warp->prepare();
        if (mode == StrideMode::warp) return;
        const auto& spec = engine.manifest().graph(pack::role::kDecoder);
        decoder = engine.decoder->make_session();
        inputs.attach(spec, *engine.decoder, *decoder, warped);
        results.push_back(decoder->buffer(spec.tensor("image")));
        decoder->prepare();
    }

    std::unique_ptr<device::Session> warp;
    std::unique_ptr<device::Session> decoder;  // mode frame
    BatchInputs inputs;
    std::vector<device::BufferPtr> results;  // what frames in between are made from
};

// Mixed results of keyframes, and in mode warp the decoder that draws from them.
struct BatchCadence::FrameContext {
    FrameContext(const Engine::Impl& engine, const LoadedAvatar& avatar, const KeyContext& keys)
        : inputs(*engine.device, avatar.sources(), engine.info.frames_in_flight),
          crops_read(engine.device->make_event()) {
        std::map<std::string, device::BufferPtr> warped;
        for (const auto& result : keys.results) {
            mixed.push_back(engine.device->allocate(result->info(), device::Location::device));
            warped[result->info().name] = mixed.back();
        }
        if (keys.decoder != nullptr) {
            crops = mixed.front();
            return;
        }
        const auto& spec = engine.manifest().graph(pack::role::kDecoder);
        decoder = engine.decoder->make_session();
        inputs.attach(spec, *engine.decoder, *decoder, warped);
        crops = decoder->buffer(spec.tensor("image"));
        decoder->prepare();
    }

    std::unique_ptr<device::Session> decoder;  // mode warp
    BatchInputs inputs;
    std::vector<device::BufferPtr> mixed;
    device::BufferPtr crops;
    std::unique_ptr<device::Event> crops_read;
};

BatchCadence::BatchCadence(const Engine::Impl& engine, const LoadedAvatar& avatar, StrideMode mode,
                           BatchOutput& output, Meters meters)
    : engine_(engine),
      mode_(mode),
      output_(output),
      meters_(meters),
      batch_(engine.info.frames_in_flight),
      tasks_(static_cast<size_t>(engine.manifest().motion.window_frames)),
      neural_(engine.device->make_stream()),
      blender_(make_blender(engine)),
      tables_(*engine.device, mode,
              static_cast<size_t>(batch_ * (CadencePlanner::kLongestSegment + 1)),
              engine.manifest().crop.size_px),
      keys_(std::make_unique<KeyContext>(engine, avatar, mode)),
      ring_(CadencePlanner::kKeysKept + 1 + 2 * static_cast<size_t>(batch_)) {
    for (auto& context : frames_) context = std::make_unique<FrameContext>(engine, avatar, *keys_);
    for (const auto& result : keys_->results) {
        auto info = result->info();
        info.shape.front() = static_cast<int64_t>(ring_);
        kept_.push_back(engine.device->allocate(info, device::Location::device));
    }
}

BatchCadence::~BatchCadence() {
    // Work in flight reads and writes the memory that goes now.
    try {
        neural_->synchronize();
    } catch (const Error&) {  // the device failed: nothing is in flight
    }
}

void BatchCadence::draw(const std::stop_token& stop) {
    const auto full = [&](const std::vector<RenderTask>& group) {
        const auto keys =
            std::ranges::count_if(group, [](const auto& task) { return task.key != nullptr; });
        return keys == batch_ || std::ssize(group) == batch_ * CadencePlanner::kLongestSegment;
    };
    while (true) {
        auto more = gather_batch(tasks_, output_, full, stop);
        if (stop.stop_requested()) return;
        const bool ended = more.empty();
        const bool goes_on = !ended && full(more);
        if (!draw_group(std::move(more), goes_on, stop)) return;
        if (ended) break;
    }
    output_.close();
}

// Draws what fills whole batches, and the rest too unless more is sure to come (`full`).
bool BatchCadence::draw_group(std::vector<RenderTask> more, bool full,
                              const std::stop_token& stop) {
    std::vector<RenderTask> group = std::move(pending_);
    const size_t drawn_keys = group.size();
    std::ranges::move(more, std::back_inserter(group));
    const auto batch = static_cast<size_t>(batch_);
    const size_t count = full ? group.size() / batch * batch : group.size();
    const auto fresh = std::span(group).subspan(drawn_keys);
    const bool warps =
        std::ranges::any_of(fresh, [](const auto& task) { return task.key != nullptr; });
    for (size_t first = 0; first < count; first += batch) {
        BatchOutput::Slot* slot = output_.take(stop);
        if (slot == nullptr) return false;
        if (first == 0) {
            tables_.upload(group, *neural_);
            if (warps) output_.mark(*slot, meters_.warp, *neural_);
            if (warps) draw_keys(fresh);
        }
        const auto tasks = std::span(group).subspan(first, std::min(batch, count - first));
        if (!draw_frames(tasks, first, *slot, stop)) return false;
    }
    pending_.assign(std::move_iterator(group.begin() + static_cast<std::ptrdiff_t>(count)),
                    std::move_iterator(group.end()));
    return true;
}

// Frames in between reach back to the keys that CadenceTrack keeps, while pending frames wait and
// a whole group of newer keys is drawn ahead of them: the ring holds them all.
void BatchCadence::draw_keys(std::span<const RenderTask> tasks) {
    std::vector<DrivingFrame> frames;
    std::vector<size_t> places;
    for (const auto& task : tasks) {
        if (!task.key) continue;
        frames.push_back(task.frame);
        task.key->place = keys_drawn_++ % ring_;
        places.push_back(task.key->place);
    }
    keys_->inputs.feed(frames, *neural_);
    keys_->warp->run(*neural_);
    if (keys_->decoder != nullptr) keys_->decoder->run(*neural_);
    for (size_t r = 0; r < kept_.size(); ++r) {
        device::Buffer& from = *keys_->results[r];
        const size_t bytes = entry_bytes(from);
        for (size_t i = 0; i < places.size(); ++i) {
            engine_.device->copy_range(from, i * bytes, *kept_[r], places[i] * bytes, bytes,
                                       *neural_);
        }
    }
}

bool BatchCadence::draw_frames(std::span<const RenderTask> tasks, size_t first,
                               BatchOutput::Slot& slot, const std::stop_token& stop) {
    FrameContext& context = *frames_[batches_++ % kContexts];
    for (const auto& task : tasks) {
        slot.frames.push_back(task.frame);
        if (!task.key) ++in_between_;
    }
    engine_.device->wait(*neural_, *context.crops_read);
    output_.mark(slot, meters_.blend, *neural_);
    fill(context, tasks, first);
    if (context.decoder != nullptr) {
        output_.mark(slot, meters_.decode, *neural_);
        context.inputs.feed(slot.frames, *neural_);
        context.decoder->run(*neural_);
    }
    return output_.send(slot, *context.crops, *neural_, *context.crops_read, stop);
}

// first: number of tasks.front() in its group.
void BatchCadence::fill(FrameContext& context, std::span<const RenderTask> tasks, size_t first) {
    for (size_t r = 0; r < kept_.size(); ++r) {
        device::Buffer& kept = *kept_[r];
        device::Buffer& mixed = *context.mixed[r];
        const size_t bytes = entry_bytes(mixed);
        for (size_t i = 0; i < tasks.size(); ++i) {
            if (tasks[i].key) {
                engine_.device->copy_range(kept, tasks[i].key->place * bytes, mixed, i * bytes,
                                           bytes, *neural_);
                continue;
            }
            std::vector<KeyBlender::Entry> parts;
            for (const auto& source : tasks[i].sources) parts.push_back({&kept, source.key->place});
            const size_t task = first + i;
            if (mode_ == StrideMode::frame) {
                blender_->move(parts, tables_.shares(task), tables_.x_offsets(task),
                               tables_.y_offsets(task), {&mixed, i}, *neural_);
            } else {
                const bool placed = mixed.info().shape.size() >= kPlacedRank;
                blender_->mix(parts, placed ? tables_.shares(task) : tables_.overall(task),
                              {&mixed, i}, *neural_);
            }
        }
    }
}

}  // namespace newscaster::pipeline
