#include "stage_fixture.h"

#include "decode/decode_stage.h"
#include "features/feature_streamer.h"
#include "media/audio_source.h"
#include "motion/motion_generator.h"
#include "pipeline/frame_pool.h"
#include "warp/warp_stage.h"

namespace newscaster::bench {

namespace fs = std::filesystem;

fs::path StageFixture::speech_file() {
    return fs::path(NEWSCASTER_SOURCE_DIR) / "examples/speech.wav";
}

EngineOptions StageFixture::engine_options() {
    EngineOptions options;
    options.pack = fs::path(NEWSCASTER_SOURCE_DIR) / "packs/studio";
    options.use_cache = false;
    return options;
}

const StageFixture::Renderer& StageFixture::renderer(const std::string& precision,
                                                     int frames_in_flight) {
    Renderer& renderer = renderers_[{precision, frames_in_flight}];
    if (!renderer.engine) {
        EngineOptions options = engine_options();
        options.precision = precision;
        options.frames_in_flight = frames_in_flight;
        renderer.engine = std::make_shared<const Engine::Impl>(options);
        renderer.avatar = std::make_unique<pipeline::LoadedAvatar>(
            renderer.engine, fs::path(NEWSCASTER_SOURCE_DIR) / "avatars/anna");
    }
    return renderer;
}

const std::vector<float>& StageFixture::samples() {
    if (samples_.empty()) {
        samples_ = media::read_mono(speech_file().string(), analysis().info.sample_rate_hz);
    }
    return samples_;
}

const std::vector<DrivingFrame>& StageFixture::driving() {
    if (!driving_.empty()) return driving_;
    const auto& engine = renderer("f32", 1).engine;
    const auto& avatar = renderer("f32", 1).avatar;
    features::FeatureStreamer features(engine->manifest(), *engine->device, *engine->audio_encoder);
    motion::MotionOptions options;
    options.seed = engine->manifest().motion.diffusion.default_seed;
    motion::MotionGenerator generator(engine->pack, *engine->device, *engine->motion_generator,
                                      options, features.silence_rows());
    const auto add = [&](const std::vector<MotionBlock>& blocks) {
        for (const auto& block : blocks) {
            for (int64_t i = 0; i < block.rows.dim(0); ++i) {
                driving_.push_back(
                    {.index = block.first_frame + i,
                     .source_frame = 0,
                     .keypoints = avatar->composer().driving_keypoints(block.rows.row(i), 0)});
            }
        }
    };
    const auto add_features = [&](const std::vector<FeatureBlock>& blocks) {
        for (const auto& block : blocks) add(generator.push(block));
    };
    add_features(features.push(samples()));
    add_features(features.finish(frames_covering(static_cast<int64_t>(samples().size()),
                                                 engine->info.sample_rate_hz, engine->info.fps)));
    add(generator.finish());
    return driving_;
}

const std::vector<VideoFramePtr>& StageFixture::video() {
    if (!video_.empty()) return video_;
    const auto& [engine, avatar] = renderer("f32", 1);
    const auto& manifest = engine->manifest();
    const auto stream = engine->device->make_stream();
    warp::WarpStage warp(manifest.graph(pack::role::kWarp), *engine->device, *engine->warp,
                         avatar->sources());
    decode::DecodeStage decoder(manifest.graph(pack::role::kDecoder), *engine->device,
                                *engine->decoder, avatar->sources(), warp.outputs());
    pipeline::FramePool pool(avatar->width(), avatar->height(), engine->info.fps);
    const auto plan = avatar->plan(0);
    const auto frames = static_cast<size_t>(engine->info.fps.to_double());
    for (size_t i = 0; i < frames; ++i) {
        warp.run(driving()[i], *stream);
        const auto crop = decoder.run(driving()[i], *stream);
        auto slot = pool.acquire(0, plan->background());
        plan->paste(crop, slot.y(), slot.stride(), slot.uv(), slot.stride());
        video_.push_back(pool.publish(std::move(slot), static_cast<int64_t>(i)));
    }
    for (size_t i = frames; i > 0; --i) video_.push_back(video_[i - 1]);
    return video_;
}

}  // namespace newscaster::bench
