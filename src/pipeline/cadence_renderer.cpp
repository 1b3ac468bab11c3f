#include "pipeline/cadence_renderer.h"

#include <optional>
#include <vector>

#include "core/keypoint_blend.h"
#include "decode/crop_blend.h"
#include "decode/decode_stage.h"
#include "warp/warp_stage.h"

namespace newscaster::pipeline {

// One set of graph sessions.
class CadenceRenderer::Worker {
  public:
    explicit Worker(CadenceRenderer& owner)
        : owner_(owner),
          stream_(owner.engine_.device->make_stream()),
          warp_(owner.engine_.manifest().graph(pack::role::kWarp), *owner.engine_.device,
                *owner.engine_.warp, owner.avatar_.sources()),
          decoder_(owner.engine_.manifest().graph(pack::role::kDecoder), *owner.engine_.device,
                   *owner.engine_.decoder, owner.avatar_.sources(), warp_.outputs()) {
        if (owner.mode_ == StrideMode::warp) {
            latents_.emplace(*owner.engine_.device, warp_.outputs());
        }
    }

    // The crop is valid until the next call.
    std::span<const float> draw(const RenderTask& task) {
        return task.key ? draw_key(task) : draw_between(task);
    }

  private:
    std::span<const float> draw_key(const RenderTask& task) {
        {
            const StageMeter::Scope scope(owner_.meters_.warp);
            warp_.run(task.frame, *stream_);
            if (latents_) task.key->latents = latents_->read(*stream_);
        }
        if (latents_) owner_.board_.publish(*task.key);
        const auto crop = decode(task.frame);
        if (!latents_) {
            task.key->crop.assign(crop.begin(), crop.end());
            owner_.board_.publish(*task.key);
        }
        return crop;
    }

    std::span<const float> draw_between(const RenderTask& task) {
        {
            const StageMeter::Scope scope(owner_.meters_.blend);
            std::vector<BlendKey> keys;
            for (const auto& [key, prior] : task.sources) keys.push_back({key->keypoints, prior});
            const ShareMaps shares(BlendFit(task.frame.keypoints, keys), task.frame.keypoints);
            if (!latents_) return blend_decoded(task, shares);
            std::vector<const warp::Latents*> latents;
            for (const auto& source : task.sources) latents.push_back(&source.key->latents);
            latents_->write(latents, shares, *stream_);
        }
        return decode(task.frame);
    }

    std::span<const float> blend_decoded(const RenderTask& task, const ShareMaps& shares) {
        std::vector<decode::CropKey> keys;
        for (const auto& source : task.sources) {
            keys.push_back({source.key->keypoints, source.key->crop});
        }
        blended_ = decode::blend_crops(task.frame.keypoints, keys, shares,
                                       owner_.engine_.manifest().crop.size_px);
        return blended_;
    }

    std::span<const float> decode(const DrivingFrame& frame) {
        const StageMeter::Scope scope(owner_.meters_.decode);
        return decoder_.run(frame, *stream_);
    }

    CadenceRenderer& owner_;
    std::unique_ptr<device::Stream> stream_;
    warp::WarpStage warp_;
    decode::DecodeStage decoder_;
    std::optional<warp::LatentBlender> latents_;  // stride mode warp
    std::vector<float> blended_;                  // stride mode frame
};

void CadenceRenderer::work(const std::stop_token& stop, const Deliver& deliver) {
    Worker worker(*this);
    while (const auto task = board_.pop(stop)) {
        const auto crop = worker.draw(*task);
        ++(task->key ? keyframes_ : in_between_);
        if (!deliver(task->frame, crop)) return;
    }
}

}  // namespace newscaster::pipeline
