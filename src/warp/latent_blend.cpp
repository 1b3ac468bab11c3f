#include "warp/latent_blend.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "newscaster/error.h"

namespace newscaster::warp {

namespace {

constexpr size_t kPlacedRank = 4;  // [batch, channels, height, width] and above

// out = sum of shares * planes, plane by plane so that one plane stays in the cache.
void blend_placed(const std::vector<const float*>& keys,
                  const std::vector<std::vector<float>>& shares, std::span<float> out) {
    const size_t cells = shares.front().size();
    for (size_t plane = 0; plane < out.size(); plane += cells) {
        float* to = out.data() + plane;
        const float* first = keys.front() + plane;
        const float* share = shares.front().data();
        for (size_t c = 0; c < cells; ++c) to[c] = share[c] * first[c];
        for (size_t i = 1; i < keys.size(); ++i) {
            const float* from = keys[i] + plane;
            share = shares[i].data();
            for (size_t c = 0; c < cells; ++c) to[c] += share[c] * from[c];
        }
    }
}

void blend_whole(const std::vector<const float*>& keys, const ShareMaps& shares,
                 std::span<float> out) {
    std::ranges::fill(out, 0.0F);
    for (size_t i = 0; i < keys.size(); ++i) {
        const auto share = static_cast<float>(shares.overall(i));
        for (size_t v = 0; v < out.size(); ++v) out[v] += share * keys[i][v];
    }
}

}  // namespace

LatentBlender::LatentBlender(device::Device& device,
                             const std::map<std::string, device::BufferPtr>& outputs)
    : device_(device) {
    for (const auto& [name, buffer] : outputs) {
        const auto& info = buffer->info();
        if (info.dtype != DType::f32) {
            throw Error(ErrorCode::bad_pack,
                        fmt::format("warp graph: output '{}': found {}, wanted f32, or a stride "
                                    "of 1 or of mode frame",
                                    name, newscaster::name_of(info.dtype)));
        }
        auto host = buffer->location() == device::Location::device
                        ? device.allocate(info, device::Location::pinned)
                        : buffer;
        outputs_.emplace(name, Output{buffer, std::move(host)});
    }
}

Latents LatentBlender::read(device::Stream& stream) const {
    for (const auto& [name, output] : outputs_) {
        if (output.host != output.buffer) device_.copy(*output.buffer, *output.host, stream);
    }
    stream.synchronize();
    Latents latents;
    for (const auto& [name, output] : outputs_) {
        const auto values = output.host->host_f32();
        latents.emplace(name, std::vector<float>(values.begin(), values.end()));
    }
    return latents;
}

void LatentBlender::write(const std::vector<const Latents*>& keys, const ShareMaps& shares,
                          device::Stream& stream) const {
    std::map<std::pair<int64_t, int64_t>, std::vector<std::vector<float>>> maps;  // by cells
    for (const auto& [name, output] : outputs_) {
        std::vector<const float*> values;
        values.reserve(keys.size());
        for (const Latents* key : keys) values.push_back(key->at(name).data());
        const auto& shape = output.buffer->info().shape;
        if (shape.size() < kPlacedRank) {
            blend_whole(values, shares, output.host->host_f32());
        } else {
            const int64_t height = shape[shape.size() - 2];
            const int64_t width = shape[shape.size() - 1];
            auto& placed = maps[{height, width}];
            for (size_t i = placed.size(); i < keys.size(); ++i) {
                placed.push_back(shares.map(i, height, width));
            }
            blend_placed(values, placed, output.host->host_f32());
        }
        if (output.host != output.buffer) device_.copy(*output.host, *output.buffer, stream);
    }
}

}  // namespace newscaster::warp
