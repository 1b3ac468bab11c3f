#include "motion/motion_generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "motion/box_smoother.h"
#include "motion/condition_rows.h"
#include "motion/ddim_sampler.h"
#include "motion/noise.h"
#include "motion/window_fusion.h"
#include "newscaster/error.h"

namespace newscaster::motion {

namespace {

constexpr uint32_t kInitialLatentStream = 0;

std::vector<float> constant_row(const pack::Pack& pack, const std::string& name) {
    const auto values = pack.constant(name).as<float>();
    const auto dims = static_cast<size_t>(pack.manifest().motion.dims);
    if (values.size() != dims) {
        throw Error(ErrorCode::bad_pack, fmt::format("constant \"{}\": found {} values, wanted {}",
                                                     name, values.size(), dims));
    }
    return {values.begin(), values.end()};
}

}  // namespace

struct MotionGenerator::Impl {
    Impl(const pack::Pack& pack, device::Device& device, device::Graph& graph,
         const MotionOptions& options, std::vector<float> silence_row);

    std::vector<MotionBlock> push(const FeatureBlock& features);
    std::vector<MotionBlock> finish();

    void append_condition(std::span<const float> features);
    std::span<const float> run_window();
    void emit(std::span<const float> normalised, std::vector<MotionBlock>& blocks);
    void append_block(const std::vector<float>& rows, std::vector<MotionBlock>& blocks);
    [[nodiscard]] std::vector<float> to_units(std::span<const float> normalised) const;
    [[nodiscard]] std::vector<float> neutral_frame() const;

    const pack::MotionSpec spec;
    const uint64_t seed;
    const size_t dims;
    const size_t condition_dims;
    const std::vector<float> silence;
    const std::vector<float> mean;
    const std::vector<float> deviation;
    const ConditionRows condition_rows;
    DdimSampler sampler;
    WindowFusion fusion;
    BoxSmoother smoother;

    std::vector<float> latent;
    std::vector<float> conditions;  // rows from first_row() of the next window on, flat
    int64_t frames_in = 0;
    int64_t windows = 0;
    int64_t rows_fused = 0;  // rows handed to the smoother
    int64_t rows_out = 0;

    [[nodiscard]] int64_t hop() const { return spec.window_frames - spec.overlap_frames; }
};

MotionGenerator::Impl::Impl(const pack::Pack& pack, device::Device& device, device::Graph& graph,
                            const MotionOptions& options, std::vector<float> silence_row)
    : spec(pack.manifest().motion),
      seed(options.seed),
      dims(static_cast<size_t>(spec.dims)),
      condition_dims(static_cast<size_t>(spec.condition_dims)),
      silence(std::move(silence_row)),
      mean(constant_row(pack, spec.mean_tensor)),
      deviation(constant_row(pack, spec.std_tensor)),
      condition_rows(pack.manifest(), options.emotion),
      sampler(pack.manifest(), device, graph, options.steps.value_or(spec.diffusion.default_steps)),
      fusion(spec.window_frames, spec.overlap_frames, neutral_frame()),
      smoother(spec.smoothing, spec.dims),
      latent(static_cast<size_t>(spec.window_frames) * dims) {
    const auto wanted = static_cast<size_t>(pack.manifest().audio.feature_dims);
    if (silence.size() != wanted) {
        throw Error(ErrorCode::runtime,
                    fmt::format("silence row: found {} values, wanted {}", silence.size(), wanted));
    }
}

std::vector<float> MotionGenerator::Impl::neutral_frame() const {
    std::vector<float> frame(dims);
    for (const auto& span : spec.layout) {
        for (int64_t i = span.offset; i < span.offset + span.size; ++i) {
            const auto dim = static_cast<size_t>(i);
            frame[dim] = static_cast<float>((span.neutral - mean[dim]) / deviation[dim]);
        }
    }
    return frame;
}

void MotionGenerator::Impl::append_condition(std::span<const float> features) {
    const size_t end = conditions.size();
    conditions.resize(end + condition_dims);
    condition_rows.fill(features, std::span(conditions).subspan(end));
}

// Samples the next window and forgets the conditions that no later window reads.
std::span<const float> MotionGenerator::Impl::run_window() {
    for (int64_t i = 0; i < spec.window_frames; ++i) {
        normal_row(seed, windows * hop() + i, kInitialLatentStream,
                   std::span(latent).subspan(static_cast<size_t>(i) * dims, dims));
    }
    const auto window = std::span<const float>(conditions)
                            .first(static_cast<size_t>(spec.window_frames) * condition_dims);
    const auto fused = fusion.add(sampler.sample(latent, fusion.previous_frame(), window));
    ++windows;
    conditions.erase(conditions.begin(),
                     conditions.begin() + hop() * static_cast<std::ptrdiff_t>(condition_dims));
    return fused;
}

std::vector<float> MotionGenerator::Impl::to_units(std::span<const float> normalised) const {
    std::vector<float> rows(normalised.begin(), normalised.end());
    for (size_t begin = 0; begin < rows.size(); begin += dims) {
        const auto row = std::span(rows).subspan(begin, dims);
        for (size_t i = 0; i < dims; ++i) row[i] = row[i] * deviation[i] + mean[i];
        for (const auto& span : spec.layout) {
            if (!span.clipped) continue;
            for (float& value :
                 row.subspan(static_cast<size_t>(span.offset), static_cast<size_t>(span.size))) {
                value =
                    std::clamp(value, static_cast<float>(span.low), static_cast<float>(span.high));
            }
        }
    }
    return rows;
}

void MotionGenerator::Impl::append_block(const std::vector<float>& rows,
                                         std::vector<MotionBlock>& blocks) {
    if (rows.empty()) return;
    const auto count = static_cast<int64_t>(rows.size() / dims);
    blocks.push_back({.first_frame = rows_out,
                      .rows = Tensor::of<float>({count, spec.dims}, std::span<const float>(rows))});
    rows_out += count;
}

void MotionGenerator::Impl::emit(std::span<const float> normalised,
                                 std::vector<MotionBlock>& blocks) {
    rows_fused += static_cast<int64_t>(normalised.size() / dims);
    append_block(smoother.push(to_units(normalised)), blocks);
}

std::vector<MotionBlock> MotionGenerator::Impl::push(const FeatureBlock& features) {
    if (features.first_frame != frames_in) {
        throw Error(ErrorCode::runtime, fmt::format("feature block: starts at frame {}, wanted {}",
                                                    features.first_frame, frames_in));
    }
    std::vector<MotionBlock> blocks;
    for (int64_t i = 0; i < features.rows.dim(0); ++i) {
        append_condition(features.rows.row(i));
        ++frames_in;
        if (frames_in == windows * hop() + spec.window_frames) emit(run_window(), blocks);
    }
    return blocks;
}

std::vector<MotionBlock> MotionGenerator::Impl::finish() {
    std::vector<MotionBlock> blocks;
    // A last window is due when rows remain that no window has covered.
    const int64_t covered = windows == 0 ? 0 : windows * hop() + spec.overlap_frames;
    if (frames_in > covered) {
        const size_t wanted = static_cast<size_t>(spec.window_frames) * condition_dims;
        while (conditions.size() < wanted) append_condition(silence);
        const auto due = std::min(hop(), frames_in - rows_fused);
        emit(run_window().first(static_cast<size_t>(due) * dims), blocks);
    }
    emit(fusion.tail().first(static_cast<size_t>(frames_in - rows_fused) * dims), blocks);
    append_block(smoother.finish(), blocks);
    return blocks;
}

MotionGenerator::MotionGenerator(const pack::Pack& pack, device::Device& device,
                                 device::Graph& graph, const MotionOptions& options,
                                 std::vector<float> silence_row)
    : impl_(std::make_unique<Impl>(pack, device, graph, options, std::move(silence_row))) {}

MotionGenerator::~MotionGenerator() = default;

std::vector<MotionBlock> MotionGenerator::push(const FeatureBlock& features) {
    return impl_->push(features);
}

std::vector<MotionBlock> MotionGenerator::finish() {
    return impl_->finish();
}

}  // namespace newscaster::motion
