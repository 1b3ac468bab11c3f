// The GPU's blending kernels compiled for this machine, behind the interface that a device offers,
// and a CPU device that offers it.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "device/device.h"
#include "device/key_blender.h"

namespace newscaster {
namespace host_kernel {

// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): CUDA's own words
#define __device__
#include "device/cuda/key_blend.cuh"
#undef __device__
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

}  // namespace host_kernel

class HostKeyBlender final : public device::KeyBlender {
  public:
    void mix(const std::vector<Entry>& parts, const Grids& shares, const Entry& target,
             device::Stream& /*stream*/) const override {
        const auto view = view_of(parts, shares, target);
        for (int place = 0; place < view.width * view.height; ++place) {
            mix_place(view, place, 0, 1);
        }
    }

    void move(const std::vector<Entry>& parts, const Grids& shares, const Grids& x, const Grids& y,
              const Entry& target, device::Stream& /*stream*/) const override {
        auto view = view_of(parts, shares, target);
        view.offset_grid = static_cast<int>(x.size);
        for (size_t i = 0; i < parts.size(); ++i) {
            view.parts[i].x_offset = grid_of(x, i);
            view.parts[i].y_offset = grid_of(y, i);
        }
        for (int pixel = 0; pixel < view.width * view.height; ++pixel) move_pixel(view, pixel);
    }

  private:
    static const float* grid_of(const Grids& grids, size_t part) {
        return grids.buffer->host_f32()
            .subspan(grids.first + part * grids.stride,
                     static_cast<size_t>(grids.size * grids.size))
            .data();
    }

    static float* values_of(const Entry& entry) {
        const auto values = entry.buffer->host_f32();
        const size_t count =
            values.size() / static_cast<size_t>(entry.buffer->info().shape.front());
        return values.subspan(entry.index * count, count).data();
    }

    static host_kernel::BlendView view_of(const std::vector<Entry>& parts, const Grids& shares,
                                          const Entry& target) {
        host_kernel::BlendView view{};
        const auto& shape = target.buffer->info().shape;
        const auto values =
            static_cast<int>(target.buffer->host_f32().size()) / static_cast<int>(shape.front());
        const bool placed = shape.size() > 3;
        view.width = placed ? static_cast<int>(shape.back()) : values;
        view.height = placed ? static_cast<int>(shape[shape.size() - 2]) : 1;
        view.planes = values / (view.width * view.height);
        view.target = values_of(target);
        view.count = static_cast<int>(parts.size());
        view.share_grid = static_cast<int>(shares.size);
        for (size_t i = 0; i < parts.size(); ++i) {
            view.parts[i].values = values_of(parts[i]);
            view.parts[i].shares = grid_of(shares, i);
        }
        return view;
    }
};

// Another device; tests override what they want of it.
class ForwardingDevice : public device::Device {
  public:
    explicit ForwardingDevice(std::unique_ptr<device::Device> inner) : inner_(std::move(inner)) {}

    [[nodiscard]] const device::DeviceInfo& info() const override { return inner_->info(); }
    [[nodiscard]] std::unique_ptr<device::Stream> make_stream() override {
        return inner_->make_stream();
    }
    [[nodiscard]] device::BufferPtr allocate(device::TensorInfo info,
                                             device::Location location) override {
        return inner_->allocate(std::move(info), location);
    }
    void copy(device::Buffer& source, device::Buffer& target, device::Stream& stream) override {
        inner_->copy(source, target, stream);
    }
    void copy_range(device::Buffer& source, size_t source_offset, device::Buffer& target,
                    size_t target_offset, size_t bytes, device::Stream& stream) override {
        inner_->copy_range(source, source_offset, target, target_offset, bytes, stream);
    }
    [[nodiscard]] std::unique_ptr<device::Recording> make_recording(
        device::Stream& stream, const std::function<void()>& enqueue) override {
        return inner_->make_recording(stream, enqueue);
    }
    [[nodiscard]] device::GraphSignature inspect(const std::filesystem::path& file) override {
        return inner_->inspect(file);
    }
    [[nodiscard]] std::unique_ptr<device::Graph> load(
        const std::filesystem::path& file, const std::string& hash,
        const device::GraphOptions& options) override {
        return inner_->load(file, hash, options);
    }

  private:
    std::unique_ptr<device::Device> inner_;
};

// A device of the CPU that blends.
class BlendingDevice final : public ForwardingDevice {
  public:
    using ForwardingDevice::ForwardingDevice;
    [[nodiscard]] std::unique_ptr<device::KeyBlender> make_key_blender() override {
        return std::make_unique<HostKeyBlender>();
    }
};

}  // namespace newscaster
