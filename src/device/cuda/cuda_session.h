// A session: bound buffers, scratch memory, and the recorded work.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "device/cuda/cuda_graph.h"

namespace newscaster::device::cuda {

// run() replays one CUDA graph and allocates nothing. The first run() after a change of bindings
// records that graph anew.
class CudaSession final : public Session {
  public:
    explicit CudaSession(std::shared_ptr<const Executable> executable);

    void bind(const std::string& tensor, BufferPtr buffer) override;
    [[nodiscard]] BufferPtr buffer(const std::string& tensor) override;
    void run(Stream& stream) override;
    void prepare() override;
    // Milliseconds of each step of the plan, run one by one. Every port in device memory.
    [[nodiscard]] std::vector<float> profile(int repeats);
    [[nodiscard]] const Plan& plan() const { return executable_->plan(); }

  private:
    [[nodiscard]] int port(const std::string& tensor) const;
    [[nodiscard]] const TensorInfo& info(int value) const;
    [[nodiscard]] bool is_input(int value) const;
    [[nodiscard]] std::map<int, std::byte*> device_ports() const;
    void record();

    std::shared_ptr<const Executable> executable_;
    DeviceMemory arena_;
    DeviceMemory workspace_;
    std::map<int, std::shared_ptr<class CudaBuffer>> bound_;
    std::map<int, DeviceMemory> staged_;  // device copies of buffers bound in host memory
    OwnedStream recording_;
    OwnedGraphExec replay_;
};

}  // namespace newscaster::device::cuda
