#include "device/openvino/openvino_graph.h"

#include <fmt/format.h>

#include <map>
#include <openvino/runtime/infer_request.hpp>
#include <utility>

#include "device/openvino/openvino_support.h"
#include "newscaster/error.h"

namespace newscaster::device {

HostBuffer::HostBuffer(TensorInfo info)
    : Buffer(std::move(info), Location::host), memory_(this->info().dtype, this->info().shape) {}

struct OpenVinoGraph::Signature {
    struct Slot {
        bool is_input = false;
        size_t index = 0;
    };
    std::string origin;
    std::vector<TensorInfo> inputs;
    std::vector<TensorInfo> outputs;
    std::map<std::string, Slot, std::less<>> slots;  // every name of every port

    [[nodiscard]] const Slot& slot(const std::string& tensor) const {
        const auto found = slots.find(tensor);
        if (found != slots.end()) return found->second;
        std::string known;
        for (const auto& info : inputs) known += " " + info.name;
        for (const auto& info : outputs) known += " " + info.name;
        throw Error(ErrorCode::bad_pack, fmt::format("{}: found no tensor '{}', wanted one of:{}",
                                                     origin, tensor, known));
    }
    [[nodiscard]] const TensorInfo& info(const Slot& slot) const {
        return slot.is_input ? inputs[slot.index] : outputs[slot.index];
    }
};

class OpenVinoGraph::BoundSession final : public Session {
  public:
    BoundSession(ov::InferRequest request, ov::CompiledModel compiled,
                 std::shared_ptr<const Signature> signature)
        : signature_(std::move(signature)),
          compiled_(std::move(compiled)),
          request_(std::move(request)),
          inputs_(signature_->inputs.size()),
          outputs_(signature_->outputs.size()) {}

    void bind(const std::string& tensor, BufferPtr buffer) override {
        const auto& slot = signature_->slot(tensor);
        const auto& wanted = signature_->info(slot);
        check(tensor, buffer.get(), wanted);
        auto& bound = slot.is_input ? inputs_[slot.index] : outputs_[slot.index];
        if (bound == buffer) return;
        const ov::Tensor view(dtype_to_ov(wanted.dtype),
                              ov::Shape(wanted.shape.begin(), wanted.shape.end()),
                              buffer->host_data());
        if (slot.is_input) {
            request_.set_tensor(compiled_.inputs()[slot.index], view);
        } else {
            request_.set_tensor(compiled_.outputs()[slot.index], view);
        }
        bound = std::move(buffer);
    }

    BufferPtr buffer(const std::string& tensor) override {
        const auto& slot = signature_->slot(tensor);
        auto& bound = slot.is_input ? inputs_[slot.index] : outputs_[slot.index];
        if (bound) return bound;
        const auto& info = signature_->info(slot);
        if (slot.is_input) {
            throw Error(ErrorCode::runtime,
                        fmt::format("{}: input '{}' is not bound", signature_->origin, info.name));
        }
        bind(tensor, std::make_shared<HostBuffer>(info));
        return outputs_[slot.index];
    }

    void run(Stream& /*stream*/) override {
        for (size_t i = 0; i < inputs_.size(); ++i) {
            if (!inputs_[i]) {
                throw Error(ErrorCode::runtime,
                            fmt::format("{}: input '{}' is not bound", signature_->origin,
                                        signature_->inputs[i].name));
            }
        }
        for (const auto& info : signature_->outputs) (void)buffer(info.name);
        try {
            request_.infer();
        } catch (const std::exception& e) {
            throw Error(ErrorCode::runtime,
                        fmt::format("{}: execution failed: {}", signature_->origin, one_line(e)));
        }
    }

  private:
    void check(const std::string& tensor, const Buffer* buffer, const TensorInfo& wanted) const {
        if (dynamic_cast<const HostBuffer*>(buffer) == nullptr) {
            throw Error(ErrorCode::runtime,
                        fmt::format("{}: tensor '{}': found {}, wanted a buffer of the cpu device",
                                    signature_->origin, tensor,
                                    buffer == nullptr ? "no buffer" : "another device's buffer"));
        }
        const auto& found = buffer->info();
        if (found.dtype != wanted.dtype || found.shape != wanted.shape) {
            throw Error(
                ErrorCode::bad_pack,
                fmt::format("{}: tensor '{}': found {}{}, wanted {}{}", signature_->origin, tensor,
                            newscaster::name_of(found.dtype), to_string(found.shape),
                            newscaster::name_of(wanted.dtype), to_string(wanted.shape)));
        }
    }

    // Declared before the request, which must not outlive the memory it points to.
    std::shared_ptr<const Signature> signature_;
    ov::CompiledModel compiled_;
    ov::InferRequest request_;
    std::vector<BufferPtr> inputs_;
    std::vector<BufferPtr> outputs_;
};

OpenVinoGraph::OpenVinoGraph(ov::CompiledModel compiled, const std::string& origin)
    : compiled_(std::move(compiled)) {
    auto signature = std::make_shared<Signature>();
    signature->origin = origin;
    const auto collect = [&](const std::vector<ov::Output<const ov::Node>>& ports, bool is_input,
                             std::vector<TensorInfo>& infos) {
        for (const auto& port : ports) {
            TensorInfo info = port_info(port);
            if (port.get_partial_shape().is_dynamic()) {
                throw Error(ErrorCode::bad_pack,
                            fmt::format("{}: tensor '{}': found shape {}, wanted every extent "
                                        "fixed by the input shapes",
                                        origin, info.name, to_string(info.shape)));
            }
            for (const auto& name : port.get_names()) {
                signature->slots[name] = {is_input, infos.size()};
            }
            infos.push_back(std::move(info));
        }
    };
    collect(compiled_.outputs(), false, signature->outputs);
    collect(compiled_.inputs(), true, signature->inputs);
    signature_ = std::move(signature);
}

const std::vector<TensorInfo>& OpenVinoGraph::inputs() const {
    return signature_->inputs;
}

const std::vector<TensorInfo>& OpenVinoGraph::outputs() const {
    return signature_->outputs;
}

std::unique_ptr<Session> OpenVinoGraph::make_session() {
    try {
        return std::make_unique<BoundSession>(compiled_.create_infer_request(), compiled_,
                                              signature_);
    } catch (const std::exception& e) {
        throw Error(ErrorCode::runtime, fmt::format("{}: cannot be made ready to run: {}",
                                                    signature_->origin, one_line(e)));
    }
}

}  // namespace newscaster::device
