#include "motion/motion_generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "motion/box_smoother.h"
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

std::vector<float> optional_row(const pack::Pack& pack, const std::string& name) {
    return name.empty() ? std::vector<float>() : constant_row(pack, name);
}

double chosen_eta(const pack::DiffusionSpec& diffusion, const Controls& controls) {
    return controls.eta.value_or(diffusion.default_eta);
}

int64_t chosen_steps(const pack::DiffusionSpec& diffusion, const MotionOptions& options) {
    const bool stochastic = chosen_eta(diffusion, options.controls.controls()) > 0.0;
    const int64_t usual = stochastic ? diffusion.stochastic_steps.value_or(diffusion.default_steps)
                                     : diffusion.default_steps;
    return options.steps.value_or(usual);
}

FusionPlan fusion_plan(const pack::MotionSpec& spec) {
    FusionPlan plan{.window = spec.window_frames,
                    .overlap = spec.overlap_frames,
                    .online = spec.fusion == pack::Fusion::online,
                    .reset = spec.reset};
    if (spec.smooth_windows) plan.filters = spec.smoothing;
    return plan;
}

// Filters that run over the joined track.
std::vector<pack::SmoothingSpec> track_filters(const pack::MotionSpec& spec) {
    if (spec.smooth_windows && spec.fusion == pack::Fusion::online) return {};
    return spec.smoothing;
}

}  // namespace

struct MotionGenerator::Impl {
    Impl(const pack::Pack& pack, device::Device& device, device::Graph& graph,
         const MotionOptions& options, std::vector<float> silence_rows);

    std::vector<MotionBlock> push(const FeatureBlock& features);
    std::vector<MotionBlock> finish();

    void append_condition(std::span<const float> features);
    void pad_window();
    [[nodiscard]] bool needs_window() const;
    std::span<const float> run_window();
    void emit(std::span<const float> normalised, std::vector<MotionBlock>& blocks);
    void append_block(std::vector<float> rows, std::vector<MotionBlock>& blocks);
    [[nodiscard]] std::vector<float> to_units(std::span<const float> normalised) const;
    void clip(std::span<float> rows) const;
    [[nodiscard]] std::vector<float> initial_frame(const MotionOptions& options) const;
    void fill_noise(uint32_t stream, std::span<float> window) const;

    const pack::MotionSpec spec;
    const uint64_t seed;
    const size_t dims;
    const size_t condition_dims;
    const std::ptrdiff_t feature_dims;
    const std::vector<float> silence;  // rows, flat
    const std::vector<float> mean;
    const std::vector<float> deviation;
    const std::vector<float> clip_low;  // [dims] or empty
    const std::vector<float> clip_high;
    const int64_t lead_in;  // frames before frame 0 that the first window covers
    ConditionRows condition_rows;
    DdimSampler sampler;
    WindowFusion fusion;
    BoxSmoother smoother;

    std::vector<float> latent;
    std::vector<float> conditions;  // rows from next_start() on, flat
    std::vector<float> last_features;
    int64_t conditions_in = 0;  // rows appended, lead-in and padding included
    int64_t frames_in = 0;
    int64_t windows = 0;
    int64_t next_row;  // frame of the row that fusion finishes next
    int64_t rows_out = 0;

    [[nodiscard]] int64_t hop() const { return spec.window_frames - spec.overlap_frames; }
    // First frame of the next window.
    [[nodiscard]] int64_t next_start() const { return windows * hop() - lead_in; }
};

MotionGenerator::Impl::Impl(const pack::Pack& pack, device::Device& device, device::Graph& graph,
                            const MotionOptions& options, std::vector<float> silence_rows)
    : spec(with_controls(pack.manifest().motion, options.controls.controls())),
      seed(options.seed),
      dims(static_cast<size_t>(spec.dims)),
      condition_dims(static_cast<size_t>(spec.condition_dims)),
      feature_dims(pack.manifest().audio.feature_dims),
      silence(std::move(silence_rows)),
      mean(constant_row(pack, spec.mean_tensor)),
      deviation(constant_row(pack, spec.std_tensor)),
      clip_low(optional_row(pack, spec.clip_low_tensor)),
      clip_high(optional_row(pack, spec.clip_high_tensor)),
      lead_in(spec.fusion == pack::Fusion::online ? spec.overlap_frames : 0),
      condition_rows(pack.manifest(), options.controls, options.avatar, options.seed),
      sampler(pack.manifest(), device, graph, chosen_steps(spec.diffusion, options),
              chosen_eta(spec.diffusion, options.controls.controls())),
      fusion(fusion_plan(spec), initial_frame(options)),
      smoother(track_filters(spec), spec.dims),
      latent(static_cast<size_t>(spec.window_frames) * dims),
      next_row(-lead_in) {
    const auto wanted = static_cast<size_t>(feature_dims);
    if (silence.empty() || silence.size() % wanted != 0) {
        throw Error(ErrorCode::runtime, fmt::format("silence rows: found {} values, wanted some {}",
                                                    silence.size(), wanted));
    }
    for (int64_t i = 0; i < lead_in; ++i) {
        const size_t row = static_cast<size_t>(i) % (silence.size() / wanted);
        append_condition(std::span(silence).subspan(row * wanted, wanted));
    }
}

std::vector<float> MotionGenerator::Impl::initial_frame(const MotionOptions& options) const {
    std::vector<double> frame(dims);
    if (spec.start_from_source) {
        if (options.source_motion.size() != dims) {
            throw Error(ErrorCode::bad_pack, fmt::format("source motion: found {} dims, wanted {}",
                                                         options.source_motion.size(), dims));
        }
        frame.assign(options.source_motion.begin(), options.source_motion.end());
    } else {
        for (const auto& span : spec.layout) {
            for (int64_t i = span.offset; i < span.offset + span.size; ++i) {
                frame[static_cast<size_t>(i)] = span.neutral;
            }
        }
    }
    std::vector<float> normalised(dims);
    for (size_t i = 0; i < dims; ++i) {
        normalised[i] = static_cast<float>((frame[i] - mean[i]) / deviation[i]);
    }
    return normalised;
}

void MotionGenerator::Impl::append_condition(std::span<const float> features) {
    const size_t end = conditions.size();
    conditions.resize(end + condition_dims);
    condition_rows.fill(conditions_in - lead_in, features, std::span(conditions).subspan(end));
    last_features.assign(features.begin(), features.end());
    ++conditions_in;
}

void MotionGenerator::Impl::fill_noise(uint32_t stream, std::span<float> window) const {
    for (int64_t i = 0; i < spec.window_frames; ++i) {
        normal_row(seed, next_start() + i, stream,
                   window.subspan(static_cast<size_t>(i) * dims, dims));
    }
}

// Samples the next window and forgets the conditions that no later window reads.
std::span<const float> MotionGenerator::Impl::run_window() {
    fill_noise(kInitialLatentStream, latent);
    const auto window = std::span<const float>(conditions)
                            .first(static_cast<size_t>(spec.window_frames) * condition_dims);
    const auto fused = fusion.add(sampler.sample(
        latent, fusion.previous_frame(), window,
        [&](uint32_t stream, std::span<float> noise) { fill_noise(stream, noise); }));
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

// The pack's per-dim limits, which hold after smoothing.
void MotionGenerator::Impl::clip(std::span<float> rows) const {
    if (clip_low.empty()) return;
    for (size_t i = 0; i < rows.size(); ++i) {
        rows[i] = std::clamp(rows[i], clip_low[i % dims], clip_high[i % dims]);
    }
}

void MotionGenerator::Impl::append_block(std::vector<float> rows,
                                         std::vector<MotionBlock>& blocks) {
    if (rows.empty()) return;
    clip(rows);
    const auto count = static_cast<int64_t>(rows.size() / dims);
    blocks.push_back({.first_frame = rows_out,
                      .rows = Tensor::of<float>({count, spec.dims}, std::span<const float>(rows))});
    rows_out += count;
}

// Takes rows from frame next_row on; lead-in and padding rows are dropped.
void MotionGenerator::Impl::emit(std::span<const float> normalised,
                                 std::vector<MotionBlock>& blocks) {
    const auto count = static_cast<int64_t>(normalised.size() / dims);
    const int64_t skipped = std::clamp<int64_t>(-next_row, 0, count);
    const int64_t end = std::clamp<int64_t>(frames_in - next_row, skipped, count);
    next_row += count;
    append_block(
        smoother.push(to_units(normalised.subspan(static_cast<size_t>(skipped) * dims,
                                                  static_cast<size_t>(end - skipped) * dims))),
        blocks);
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
        if (frames_in == next_start() + spec.window_frames) emit(run_window(), blocks);
    }
    return blocks;
}

// Whether a window is due though its features end early.
bool MotionGenerator::Impl::needs_window() const {
    if (frames_in == 0) return false;
    if (windows == 0) return true;
    const int64_t covered = next_start() + spec.overlap_frames;
    if (!spec.repeat_last_condition) return frames_in > covered;
    if (lead_in == 0) return frames_in > next_start();
    return covered <= frames_in;
}

// Silence, or more of the last frame: offline its whole condition row, online its features beside
// the conditions of the frames to come, as Ditto does.
void MotionGenerator::Impl::pad_window() {
    const size_t wanted = static_cast<size_t>(spec.window_frames) * condition_dims;
    if (spec.repeat_last_condition && lead_in == 0) {
        const std::vector<float> last(
            conditions.end() - static_cast<std::ptrdiff_t>(condition_dims), conditions.end());
        while (conditions.size() < wanted) {
            conditions.insert(conditions.end(), last.begin(), last.end());
        }
        return;
    }
    const auto features = spec.repeat_last_condition
                              ? last_features
                              : std::vector<float>(silence.begin(), silence.begin() + feature_dims);
    while (conditions.size() < wanted) append_condition(features);
}

std::vector<MotionBlock> MotionGenerator::Impl::finish() {
    std::vector<MotionBlock> blocks;
    while (needs_window()) {
        // Padding is for this window alone: the next one starts from the rows that came in.
        const auto real = static_cast<std::ptrdiff_t>(conditions.size());
        pad_window();
        emit(run_window(), blocks);
        const auto used = hop() * static_cast<std::ptrdiff_t>(condition_dims);
        conditions.resize(static_cast<size_t>(std::max<std::ptrdiff_t>(real - used, 0)));
    }
    emit(fusion.tail(), blocks);
    append_block(smoother.finish(), blocks);
    return blocks;
}

MotionGenerator::MotionGenerator(const pack::Pack& pack, device::Device& device,
                                 device::Graph& graph, const MotionOptions& options,
                                 std::vector<float> silence_rows)
    : impl_(std::make_unique<Impl>(pack, device, graph, options, std::move(silence_rows))) {}

MotionGenerator::~MotionGenerator() = default;

std::vector<MotionBlock> MotionGenerator::push(const FeatureBlock& features) {
    return impl_->push(features);
}

std::vector<MotionBlock> MotionGenerator::finish() {
    return impl_->finish();
}

std::vector<float> MotionGenerator::reference_row() const {
    if (impl_->lead_in == 0 || impl_->fusion.first_frame().empty()) return {};
    auto row = impl_->to_units(impl_->fusion.first_frame());
    impl_->clip(row);
    return row;
}

}  // namespace newscaster::motion
