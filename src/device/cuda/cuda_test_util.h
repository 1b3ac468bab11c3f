// Helpers of the cuda provider's tests.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "core/tensor.h"
#include "device/cuda/cuda_device.h"
#include "device/device.h"

namespace newscaster::device::test {

// A test that needs the GPU begins with this.
#define NEWSCASTER_NEEDS_GPU() \
    if (cuda_device_count() == 0) GTEST_SKIP() << "no NVIDIA GPU with a driver"

using Values = std::map<std::string, Tensor>;

inline Tensor random_tensor(const Shape& shape, std::mt19937& random, float low = -1.0F,
                            float high = 1.0F) {
    Tensor tensor(DType::f32, shape);
    std::uniform_real_distribution<float> values(low, high);
    for (auto& value : tensor.as<float>()) value = values(random);
    return tensor;
}

// Runs a graph once; outputs start as NaN (all bits set), so that an unwritten element shows.
inline Values run_graph(Device& device, Graph& graph, const Values& inputs) {
    const auto stream = device.make_stream();
    const auto session = graph.make_session();
    for (const auto& info : graph.inputs()) {
        const Tensor& tensor = inputs.at(info.name);
        const auto host = device.allocate(info, Location::pinned);
        std::memcpy(host->host_data(), tensor.data(), tensor.bytes());
        const auto target = device.allocate(info, Location::device);
        device.copy(*host, *target, *stream);
        stream->synchronize();
        session->bind(info.name, target);
    }
    std::map<std::string, BufferPtr> results;
    for (const auto& info : graph.outputs()) {
        results[info.name] = device.allocate(info, Location::pinned);
        std::memset(results[info.name]->host_data(), 0xFF, results[info.name]->bytes());
        device.copy(*results[info.name], *session->buffer(info.name), *stream);
    }
    session->run(*stream);
    Values outputs;
    for (const auto& info : graph.outputs()) {
        device.copy(*session->buffer(info.name), *results[info.name], *stream);
        stream->synchronize();
        Tensor tensor(info.dtype, info.shape);
        std::memcpy(tensor.data(), results[info.name]->host_data(), tensor.bytes());
        outputs.emplace(info.name, std::move(tensor));
    }
    return outputs;
}

struct Difference {
    double relative = 0.0;  // |a - b| / |b| over all elements; NaN when any element is
    double largest = 0.0;   // of single elements, relative to max(1, |b|)
    double psnr_db = 0.0;   // for values of 0 to 1
};

inline Difference difference(std::span<const float> found, std::span<const double> wanted) {
    double error = 0.0;
    double norm = 0.0;
    Difference result;
    for (size_t i = 0; i < wanted.size(); ++i) {
        const double d = static_cast<double>(found[i]) - wanted[i];
        error += d * d;
        norm += wanted[i] * wanted[i];
        const double single = std::abs(d) / std::max(1.0, std::abs(wanted[i]));
        result.largest = single > result.largest || std::isnan(single) ? single : result.largest;
    }
    result.relative = std::sqrt(error / std::max(norm, 1e-30));
    result.psnr_db = -10.0 * std::log10(error / static_cast<double>(wanted.size()));
    return result;
}

}  // namespace newscaster::device::test
