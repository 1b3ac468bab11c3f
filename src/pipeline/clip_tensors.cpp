#include "pipeline/clip_tensors.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

namespace newscaster::pipeline {

namespace {

constexpr int64_t kLarge = 4096;  // values from which an entry is stored as half floats

// Luma differences of two crops, as means over blocks: noise is averaged away, a lid or a shoulder
// that moved by two pixels is not.
constexpr int kBlocks = 64;  // a side
constexpr double kMostDifference = 20.0;
constexpr double kMostRms = 2.5;

std::vector<float> block_means(const RgbImage& crop) {
    const int block = std::max(crop.width / kBlocks, 1);
    const int count = crop.width / block;
    std::vector<float> means(static_cast<size_t>(count) * static_cast<size_t>(count));
    for (int row = 0; row < count * block; ++row) {
        const uint8_t* pixel =
            &crop.pixels[3 * static_cast<size_t>(row) * static_cast<size_t>(crop.width)];
        float* const line = &means[static_cast<size_t>(row / block) * static_cast<size_t>(count)];
        for (int column = 0; column < count * block; ++column, pixel += 3) {
            line[column / block] += 0.2126F * static_cast<float>(pixel[0]) +
                                    0.7152F * static_cast<float>(pixel[1]) +
                                    0.0722F * static_cast<float>(pixel[2]);
        }
    }
    const auto area = static_cast<float>(block * block);
    for (float& mean : means) mean /= area;
    return means;
}

bool looks_different(const std::vector<float>& a, const std::vector<float>& b) {
    double most = 0.0;
    double sum = 0.0;
    for (size_t i = 0; i < a.size(); ++i) {
        const double difference = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
        most = std::max(most, difference);
        sum += difference * difference;
    }
    return most > kMostDifference || std::sqrt(sum / static_cast<double>(a.size())) > kMostRms;
}

void append_halves(std::span<const float> values, std::vector<std::byte>& bytes) {
    const size_t start = bytes.size();
    bytes.resize(start + values.size() * sizeof(uint16_t));
    std::byte* target = bytes.data() + start;
    for (const float value : values) {
        const uint16_t half = float_to_half(value);
        std::memcpy(target, &half, sizeof(half));
        target += sizeof(half);
    }
}

}  // namespace

void TensorStack::append(const TensorMap& tensors) {
    for (const auto& [name, tensor] : tensors) {
        const bool halve = tensor.dtype() == DType::f32 && tensor.size() >= kLarge;
        Column& column = columns_[name];
        column.dtype = halve ? DType::f16 : tensor.dtype();
        column.entry = tensor.shape();
        if (halve) {
            append_halves(tensor.as<float>(), column.bytes);
        } else {
            const auto* first = reinterpret_cast<const std::byte*>(tensor.data());
            column.bytes.insert(column.bytes.end(), first, first + tensor.bytes());
        }
    }
    ++entries_;
}

void TensorStack::repeat(int64_t from) {
    for (auto& [name, column] : columns_) {
        const size_t entry = column.bytes.size() / static_cast<size_t>(entries_);
        column.bytes.resize(column.bytes.size() + entry);
        std::memcpy(column.bytes.data() + static_cast<size_t>(entries_) * entry,
                    column.bytes.data() + static_cast<size_t>(from) * entry, entry);
    }
    ++entries_;
}

TensorMap TensorStack::take() {
    TensorMap tensors;
    for (auto& [name, column] : columns_) {
        Shape shape = column.entry;
        shape.at(0) = entries_;
        Tensor tensor(column.dtype, shape);
        std::memcpy(tensor.data(), column.bytes.data(), column.bytes.size());
        column.bytes = {};
        tensors.emplace(name, std::move(tensor));
    }
    columns_.clear();
    entries_ = 0;
    return tensors;
}

bool KeyFrames::is_key(const RgbImage& crop) {
    ++since_;
    auto means = block_means(crop);
    if (!last_.empty() && (since_ < least_gap_ || !looks_different(means, last_))) return false;
    last_ = std::move(means);
    since_ = 0;
    return true;
}

}  // namespace newscaster::pipeline
