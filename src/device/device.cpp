#include "device/device.h"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <utility>

#include "device/key_blender.h"
#include "newscaster/error.h"

namespace newscaster::device {

namespace {

constexpr std::array<std::pair<Precision, std::string_view>, 5> kPrecisions{
    {{Precision::f32, "f32"},
     {Precision::f16, "f16"},
     {Precision::bf16, "bf16"},
     {Precision::int8, "int8"},
     {Precision::fp8, "fp8"}}};

}  // namespace

std::string_view name_of(Precision precision) {
    for (const auto& [value, name] : kPrecisions) {
        if (value == precision) return name;
    }
    throw Error(ErrorCode::runtime, "unknown precision value");
}

Precision precision_from_name(std::string_view name) {
    for (const auto& [value, known] : kPrecisions) {
        if (known == name) return value;
    }
    throw Error(ErrorCode::bad_input,
                fmt::format("precision: found '{}', wanted f32, f16, bf16, int8 or fp8", name));
}

size_t Buffer::bytes() const {
    return static_cast<size_t>(element_count(info_.shape)) * size_of(info_.dtype);
}

std::span<float> Buffer::host_f32() {
    if (info_.dtype != DType::f32 || host_data() == nullptr) {
        throw Error(ErrorCode::runtime,
                    fmt::format("buffer '{}': found {} in {} memory, wanted f32 in host memory",
                                info_.name, newscaster::name_of(info_.dtype),
                                location_ == Location::device ? "device" : "host"));
    }
    return {reinterpret_cast<float*>(host_data()), bytes() / sizeof(float)};
}

void Device::copy_range(Buffer& source, size_t source_offset, Buffer& target, size_t target_offset,
                        size_t bytes, Stream& /*stream*/) {
    require_range(source, source_offset, bytes);
    require_range(target, target_offset, bytes);
    if (source.host_data() == nullptr || target.host_data() == nullptr) {
        throw Error(ErrorCode::runtime, fmt::format("copy '{}' to '{}': wanted both in host memory",
                                                    source.info().name, target.info().name));
    }
    if (bytes == 0) return;
    std::memcpy(target.host_data() + target_offset, source.host_data() + source_offset, bytes);
}

std::unique_ptr<Event> Device::make_event() {
    return std::make_unique<Event>();
}

void Device::record(Event& /*event*/, Stream& /*stream*/) {}

void Device::wait(Stream& /*stream*/, Event& /*event*/) {}

std::unique_ptr<Recording> Device::make_recording(Stream& /*stream*/,
                                                  const std::function<void()>& enqueue) {
    class Repeated final : public Recording {
      public:
        explicit Repeated(std::function<void()> work) : work_(std::move(work)) {}
        void replay(Stream& /*stream*/) override { work_(); }

      private:
        std::function<void()> work_;
    };
    return std::make_unique<Repeated>(enqueue);
}

double Device::elapsed_ms(Event& /*from*/, Event& /*to*/) {
    return 0.0;
}

std::unique_ptr<RoiPaster> Device::make_roi_paster(const RoiTables& /*tables*/) {
    return nullptr;
}

std::unique_ptr<KeyBlender> Device::make_key_blender() {
    return nullptr;
}

void require_range(const Buffer& buffer, size_t offset, size_t bytes) {
    if (offset <= buffer.bytes() && bytes <= buffer.bytes() - offset) return;
    throw Error(ErrorCode::runtime,
                fmt::format("buffer '{}': found bytes {} to {}, wanted them within its {}",
                            buffer.info().name, offset, offset + bytes, buffer.bytes()));
}

BufferPtr upload(Device& device, Stream& stream, const std::string& name, const Tensor& tensor,
                 Location location) {
    const Tensor values = tensor.to_f32();
    const TensorInfo info{name, DType::f32, values.shape()};
    BufferPtr target = device.allocate(info, location);
    if (values.bytes() == 0) return target;
    if (target->host_data() != nullptr) {
        std::memcpy(target->host_data(), values.data(), values.bytes());
        return target;
    }
    const BufferPtr staging = device.allocate(info, Location::pinned);
    std::memcpy(staging->host_data(), values.data(), values.bytes());
    device.copy(*staging, *target, stream);
    stream.synchronize();  // the staging buffer dies here
    return target;
}

}  // namespace newscaster::device
