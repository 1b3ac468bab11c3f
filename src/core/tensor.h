// Dense host tensors: an owning, 64-byte aligned Tensor and non-owning typed spans of it.
// Device memory is device::Buffer; copies between the two are named by direction there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace newscaster {

enum class DType { f32, f16, bf16, f64, u8, i8, i32, i64, boolean };

[[nodiscard]] size_t size_of(DType dtype);
[[nodiscard]] std::string_view name_of(DType dtype);         // "f32", ...
[[nodiscard]] DType dtype_from_name(std::string_view name);  // throws Error(bad_input)

// Row-major extents. An extent of -1 (only in graph signatures) means "any".
using Shape = std::vector<int64_t>;

[[nodiscard]] int64_t element_count(const Shape& shape);  // throws Error on negative or overflow
[[nodiscard]] std::string to_string(const Shape& shape);  // "[1,80,59]"

template <typename T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
    static constexpr DType kValue = DType::f32;
};
template <>
struct DTypeOf<double> {
    static constexpr DType kValue = DType::f64;
};
template <>
struct DTypeOf<uint8_t> {
    static constexpr DType kValue = DType::u8;
};
template <>
struct DTypeOf<int32_t> {
    static constexpr DType kValue = DType::i32;
};
template <>
struct DTypeOf<int64_t> {
    static constexpr DType kValue = DType::i64;
};

// Move-only owner of a dense block in host memory.
class Tensor {
  public:
    Tensor() = default;
    Tensor(DType dtype, Shape shape);  // zero-filled

    template <typename T>
    static Tensor of(Shape shape, std::span<const T> values);

    Tensor(Tensor&&) noexcept = default;
    Tensor& operator=(Tensor&&) noexcept = default;
    Tensor(const Tensor&) = delete;
    Tensor& operator=(const Tensor&) = delete;
    ~Tensor() = default;

    [[nodiscard]] Tensor clone() const;
    // The same values as f32; accepts f32, f16, bf16, f64, u8 and integer sources.
    [[nodiscard]] Tensor to_f32() const;

    [[nodiscard]] DType dtype() const { return dtype_; }
    [[nodiscard]] const Shape& shape() const { return shape_; }
    [[nodiscard]] int64_t dim(size_t axis) const { return shape_.at(axis); }
    [[nodiscard]] size_t rank() const { return shape_.size(); }
    [[nodiscard]] int64_t size() const { return size_; }
    [[nodiscard]] size_t bytes() const;
    [[nodiscard]] bool empty() const { return size_ == 0; }

    [[nodiscard]] std::byte* data() { return data_.get(); }
    [[nodiscard]] const std::byte* data() const { return data_.get(); }

    // Typed view of all elements; throws Error(runtime) when T is not the tensor's type.
    template <typename T>
    [[nodiscard]] std::span<T> as();
    template <typename T>
    [[nodiscard]] std::span<const T> as() const;

    // Elements of entry i along the first axis, as f32.
    [[nodiscard]] std::span<float> row(int64_t i);
    [[nodiscard]] std::span<const float> row(int64_t i) const;

  private:
    struct AlignedFree {
        void operator()(std::byte* p) const;
    };
    void require(DType wanted) const;

    DType dtype_ = DType::f32;
    Shape shape_;
    int64_t size_ = 0;
    std::unique_ptr<std::byte[], AlignedFree> data_;
};

template <typename T>
std::span<T> Tensor::as() {
    require(DTypeOf<T>::kValue);
    return {reinterpret_cast<T*>(data_.get()), static_cast<size_t>(size_)};
}

template <typename T>
std::span<const T> Tensor::as() const {
    require(DTypeOf<T>::kValue);
    return {reinterpret_cast<const T*>(data_.get()), static_cast<size_t>(size_)};
}

template <typename T>
Tensor Tensor::of(Shape shape, std::span<const T> values) {
    Tensor tensor(DTypeOf<T>::kValue, std::move(shape));
    auto target = tensor.as<T>();
    for (size_t i = 0; i < target.size() && i < values.size(); ++i) target[i] = values[i];
    return tensor;
}

// IEEE half and bfloat16 <-> float, round to nearest even.
[[nodiscard]] float half_to_float(uint16_t bits);
[[nodiscard]] uint16_t float_to_half(float value);
[[nodiscard]] float bfloat16_to_float(uint16_t bits);

}  // namespace newscaster
