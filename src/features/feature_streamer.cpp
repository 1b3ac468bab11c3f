#include "features/feature_streamer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "newscaster/error.h"

namespace newscaster::features {

namespace {

Tensor take_rows(std::span<const float> rows, int64_t count, int64_t dims) {
    return Tensor::of<float>({count, dims}, rows.first(static_cast<size_t>(count * dims)));
}

}  // namespace

struct FeatureStreamer::Impl {
    Impl(const pack::Manifest& manifest, device::Device& device_in, device::Graph& graph);

    // Features [present_frames, feature_dims] of one window of samples.
    std::vector<float> encode(std::span<const float> window);
    // Encodes the chunk at the start of `pending` and forgets the samples before the next one.
    std::vector<float> next_chunk();

    const pack::AudioSpec spec;
    device::Device& device;
    std::unique_ptr<device::Stream> stream;
    std::unique_ptr<device::Session> session;
    device::BufferPtr audio_host;
    device::BufferPtr audio_device;
    device::BufferPtr features_host;
    device::BufferPtr features_device;

    // Samples from past_frames and lead_samples before the next chunk on; `consumed` of them are
    // done with.
    std::vector<float> pending;
    size_t consumed = 0;
    int64_t produced = 0;
    bool finished = false;
};

FeatureStreamer::Impl::Impl(const pack::Manifest& manifest, device::Device& device_in,
                            device::Graph& graph)
    : spec(manifest.audio),
      device(device_in),
      stream(device.make_stream()),
      session(graph.make_session()),
      pending(static_cast<size_t>(spec.past_frames * spec.samples_per_frame + spec.lead_samples)) {
    const auto& encoder = manifest.graph(pack::role::kAudioEncoder);
    const std::string& audio = encoder.tensor("audio");
    const std::string& features = encoder.tensor("features");
    const auto& input = encoder.inputs.at(audio);
    const auto& output = encoder.outputs.at(features);
    if (input.dtype != DType::f32 || element_count(input.shape) != spec.window_samples()) {
        throw Error(ErrorCode::bad_pack,
                    fmt::format("{}: tensor \"{}\": found {}{}, wanted {} f32 samples",
                                encoder.model.file, audio, name_of(input.dtype),
                                to_string(input.shape), spec.window_samples()));
    }
    const int64_t rows = spec.first_row + spec.present_frames * spec.rows_per_frame;
    if (output.dtype != DType::f32 || output.shape.empty() ||
        output.shape.back() != spec.feature_dims ||
        element_count(output.shape) < rows * spec.feature_dims) {
        throw Error(ErrorCode::bad_pack,
                    fmt::format("{}: tensor \"{}\": found {}{}, wanted at least {} f32 rows of {}",
                                encoder.model.file, features, name_of(output.dtype),
                                to_string(output.shape), rows, spec.feature_dims));
    }
    const device::TensorInfo audio_info{audio, input.dtype, input.shape};
    const device::TensorInfo features_info{features, output.dtype, output.shape};
    audio_host = device.allocate(audio_info, device::Location::pinned);
    audio_device = device.allocate(audio_info, device::Location::device);
    features_host = device.allocate(features_info, device::Location::pinned);
    features_device = device.allocate(features_info, device::Location::device);
    session->bind(audio, audio_device);
    session->bind(features, features_device);
    session->prepare();
}

std::vector<float> FeatureStreamer::Impl::encode(std::span<const float> window) {
    std::copy(window.begin(), window.end(), audio_host->host_f32().begin());
    device.copy(*audio_host, *audio_device, *stream);
    session->run(*stream);
    device.copy(*features_device, *features_host, *stream);
    stream->synchronize();

    const auto dims = static_cast<size_t>(spec.feature_dims);
    const auto group = static_cast<size_t>(spec.rows_per_frame);
    const auto source =
        features_host->host_f32().subspan(static_cast<size_t>(spec.first_row) * dims);
    std::vector<float> rows(static_cast<size_t>(spec.present_frames) * dims);
    for (size_t i = 0; i < rows.size(); ++i) {
        const size_t first = i / dims * group * dims + i % dims;
        float sum = 0.0F;
        for (size_t k = 0; k < group; ++k) sum += source[first + k * dims];
        rows[i] = sum / static_cast<float>(group);
    }
    return rows;
}

std::vector<float> FeatureStreamer::Impl::next_chunk() {
    const auto window = std::span<const float>(pending).subspan(
        consumed, static_cast<size_t>(spec.window_samples()));
    auto rows = encode(window);
    consumed += static_cast<size_t>(spec.present_frames * spec.samples_per_frame);
    return rows;
}

FeatureStreamer::FeatureStreamer(const pack::Manifest& manifest, device::Device& device,
                                 device::Graph& graph)
    : impl_(std::make_unique<Impl>(manifest, device, graph)) {}

FeatureStreamer::~FeatureStreamer() = default;

std::vector<FeatureBlock> FeatureStreamer::push(std::span<const float> samples) {
    Impl& s = *impl_;
    if (s.finished) {
        throw Error(ErrorCode::runtime, "features: samples after the end of the stream");
    }
    std::vector<FeatureBlock> blocks;
    const auto window = static_cast<size_t>(s.spec.window_samples());
    // In slices of one window, so that one huge push does not hold twice its size.
    for (size_t begin = 0; begin < samples.size(); begin += window) {
        const auto slice = samples.subspan(begin, std::min(window, samples.size() - begin));
        s.pending.insert(s.pending.end(), slice.begin(), slice.end());
        while (s.pending.size() - s.consumed >= window) {
            const auto rows = s.next_chunk();
            blocks.push_back({.first_frame = s.produced,
                              .rows = take_rows(rows, s.spec.present_frames, s.spec.feature_dims)});
            s.produced += s.spec.present_frames;
        }
        s.pending.erase(s.pending.begin(),
                        s.pending.begin() + static_cast<std::ptrdiff_t>(s.consumed));
        s.consumed = 0;
    }
    return blocks;
}

std::vector<FeatureBlock> FeatureStreamer::finish(int64_t total_frames) {
    Impl& s = *impl_;
    if (total_frames < s.produced) {
        throw Error(ErrorCode::runtime,
                    fmt::format("features: found {} frames at the end, wanted at "
                                "least the {} already produced",
                                total_frames, s.produced));
    }
    s.finished = true;
    std::vector<FeatureBlock> blocks;
    while (s.produced < total_frames) {
        s.pending.resize(static_cast<size_t>(s.spec.window_samples()), 0.0F);
        const auto rows = s.next_chunk();
        const int64_t count = std::min(s.spec.present_frames, total_frames - s.produced);
        blocks.push_back(
            {.first_frame = s.produced, .rows = take_rows(rows, count, s.spec.feature_dims)});
        s.produced += count;
        s.pending.erase(s.pending.begin(),
                        s.pending.begin() + static_cast<std::ptrdiff_t>(s.consumed));
        s.consumed = 0;
    }
    return blocks;
}

int64_t FeatureStreamer::frames_produced() const {
    return impl_->produced;
}

std::vector<float> FeatureStreamer::silence_rows() {
    const std::vector<float> zeros(static_cast<size_t>(impl_->spec.window_samples()));
    return impl_->encode(zeros);
}

}  // namespace newscaster::features
