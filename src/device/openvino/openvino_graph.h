// Host buffers, the no-op stream, and graphs compiled by OpenVINO's CPU plugin.
#pragma once

#include <memory>
#include <openvino/runtime/compiled_model.hpp>
#include <string>
#include <vector>

#include "core/tensor.h"
#include "device/device.h"

namespace newscaster::device {

// 64-byte aligned host memory; pinned and device memory are the same thing on the CPU.
class HostBuffer final : public Buffer {
  public:
    explicit HostBuffer(TensorInfo info);
    [[nodiscard]] std::byte* host_data() override { return memory_.data(); }

  private:
    Tensor memory_;
};

class HostStream final : public Stream {
  public:
    void synchronize() override {}
};

class OpenVinoGraph final : public Graph {
  public:
    // origin: file name for messages. Throws Error(bad_pack) when a port has no fixed shape.
    OpenVinoGraph(ov::CompiledModel compiled, const std::string& origin);

    [[nodiscard]] const std::vector<TensorInfo>& inputs() const override;
    [[nodiscard]] const std::vector<TensorInfo>& outputs() const override;
    [[nodiscard]] std::unique_ptr<Session> make_session() override;

  private:
    struct Signature;
    class BoundSession;

    ov::CompiledModel compiled_;
    std::shared_ptr<const Signature> signature_;
};

}  // namespace newscaster::device
