#include "core/tensor.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <utility>

#include "newscaster/error.h"

namespace newscaster {

namespace {

constexpr size_t kAlignment = 64;

struct DTypeRow {
    DType dtype;
    std::string_view name;
    size_t bytes;
};

constexpr std::array<DTypeRow, 9> kDTypes{{{DType::f32, "f32", 4},
                                           {DType::f16, "f16", 2},
                                           {DType::bf16, "bf16", 2},
                                           {DType::f64, "f64", 8},
                                           {DType::u8, "u8", 1},
                                           {DType::i8, "i8", 1},
                                           {DType::i32, "i32", 4},
                                           {DType::i64, "i64", 8},
                                           {DType::boolean, "boolean", 1}}};

const DTypeRow& row_of(DType dtype) {
    for (const auto& row : kDTypes) {
        if (row.dtype == dtype) return row;
    }
    throw Error(ErrorCode::runtime, "unknown tensor element type");
}

template <typename T, typename Convert>
void convert_into(const std::byte* source, std::span<float> target, Convert convert) {
    for (size_t i = 0; i < target.size(); ++i) {
        T value;
        std::memcpy(&value, source + i * sizeof(T), sizeof(T));
        target[i] = convert(value);
    }
}

}  // namespace

size_t size_of(DType dtype) {
    return row_of(dtype).bytes;
}

std::string_view name_of(DType dtype) {
    return row_of(dtype).name;
}

DType dtype_from_name(std::string_view name) {
    for (const auto& row : kDTypes) {
        if (row.name == name) return row.dtype;
    }
    throw Error(ErrorCode::bad_input, fmt::format("unknown tensor element type \"{}\"", name));
}

int64_t element_count(const Shape& shape) {
    int64_t count = 1;
    for (const int64_t extent : shape) {
        if (extent < 0) {
            throw Error(ErrorCode::bad_input,
                        fmt::format("shape {} has a negative extent", to_string(shape)));
        }
        if (extent != 0 && count > std::numeric_limits<int64_t>::max() / 16 / extent) {
            throw Error(ErrorCode::bad_input,
                        fmt::format("shape {} is too large", to_string(shape)));
        }
        count *= extent;
    }
    return count;
}

std::string to_string(const Shape& shape) {
    return fmt::format("[{}]", fmt::join(shape, ","));
}

void Tensor::AlignedFree::operator()(std::byte* p) const {
    std::free(p);
}

Tensor::Tensor(DType dtype, Shape shape)
    : dtype_(dtype), shape_(std::move(shape)), size_(element_count(shape_)) {
    const size_t wanted = bytes();
    const size_t rounded = (wanted + kAlignment - 1) / kAlignment * kAlignment;
    auto* block = static_cast<std::byte*>(std::aligned_alloc(kAlignment, rounded ? rounded : 64));
    if (block == nullptr) throw std::bad_alloc();
    data_.reset(block);
    std::memset(block, 0, rounded);
}

size_t Tensor::bytes() const {
    return static_cast<size_t>(size_) * size_of(dtype_);
}

Tensor Tensor::clone() const {
    Tensor copy(dtype_, shape_);
    if (size_ > 0) std::memcpy(copy.data(), data(), bytes());
    return copy;
}

Tensor Tensor::to_f32() const {
    if (dtype_ == DType::f32) return clone();
    Tensor out(DType::f32, shape_);
    const auto target = out.as<float>();
    const std::byte* source = data();
    const auto plain = [](auto value) { return static_cast<float>(value); };
    switch (dtype_) {
        case DType::f16:
            convert_into<uint16_t>(source, target, half_to_float);
            break;
        case DType::bf16:
            convert_into<uint16_t>(source, target, bfloat16_to_float);
            break;
        case DType::f64:
            convert_into<double>(source, target, plain);
            break;
        case DType::u8:
        case DType::boolean:
            convert_into<uint8_t>(source, target, plain);
            break;
        case DType::i8:
            convert_into<int8_t>(source, target, plain);
            break;
        case DType::i32:
            convert_into<int32_t>(source, target, plain);
            break;
        case DType::i64:
            convert_into<int64_t>(source, target, plain);
            break;
        case DType::f32:
            break;
    }
    return out;
}

void Tensor::require(DType wanted) const {
    if (wanted != dtype_) {
        throw Error(ErrorCode::runtime, fmt::format("tensor holds {}, accessed as {}",
                                                    name_of(dtype_), name_of(wanted)));
    }
}

std::span<float> Tensor::row(int64_t i) {
    const int64_t stride = size_ / shape_.at(0);
    return as<float>().subspan(static_cast<size_t>(i * stride), static_cast<size_t>(stride));
}

std::span<const float> Tensor::row(int64_t i) const {
    const int64_t stride = size_ / shape_.at(0);
    return as<float>().subspan(static_cast<size_t>(i * stride), static_cast<size_t>(stride));
}

float half_to_float(uint16_t bits) {
    const uint32_t sign = static_cast<uint32_t>(bits & 0x8000U) << 16U;
    const uint32_t exponent = (bits >> 10U) & 0x1FU;
    const uint32_t mantissa = bits & 0x3FFU;
    if (exponent == 0) {  // zero and subnormals: mantissa * 2^-24
        const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;
        return sign != 0 ? -magnitude : magnitude;
    }
    const uint32_t wide = exponent == 31 ? 0xFFU : exponent + 112U;
    return std::bit_cast<float>(sign | (wide << 23U) | (mantissa << 13U));
}

uint16_t float_to_half(float value) {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    const auto sign = static_cast<uint16_t>((bits >> 16U) & 0x8000U);
    const uint32_t magnitude = bits & 0x7FFFFFFFU;
    if (magnitude >= 0x7F800000U) {  // infinity, NaN
        return static_cast<uint16_t>(sign | 0x7C00U | (magnitude > 0x7F800000U ? 0x200U : 0U));
    }
    if (magnitude >= 0x477FF000U) return static_cast<uint16_t>(sign | 0x7C00U);  // rounds to inf
    if (magnitude < 0x38800000U) {  // subnormal result: let the FPU round to a multiple of 2^-24
        const float scaled = std::bit_cast<float>(magnitude) + 0.5F;
        return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(scaled) - 0x3F000000U));
    }
    const uint32_t rounded = magnitude + 0xFFFU + ((magnitude >> 13U) & 1U);
    return static_cast<uint16_t>(sign | ((rounded - 0x38000000U) >> 13U));
}

float bfloat16_to_float(uint16_t bits) {
    return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16U);
}

}  // namespace newscaster
