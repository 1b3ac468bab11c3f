// Reads the part of an ONNX file that an inference graph needs, without the protobuf library.
// Messages: https://github.com/onnx/onnx/blob/main/onnx/onnx.proto
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/tensor.h"
#include "device/device.h"

namespace newscaster::device::cuda {

using TensorPtr = std::shared_ptr<const Tensor>;

// One attribute; only the field of its kind is filled.
struct Attribute {
    int64_t integer = 0;
    float number = 0.0F;
    std::string text;
    std::vector<int64_t> integers;
    std::vector<float> numbers;
    TensorPtr tensor;
};
using Attributes = std::map<std::string, Attribute, std::less<>>;

struct OnnxNode {
    std::string name;
    std::string op;  // operator type; other domains than ONNX's own as "domain::type"
    std::vector<std::string> inputs;  // "" = absent
    std::vector<std::string> outputs;
    Attributes attributes;
};

struct OnnxModel {
    int64_t opset = 0;
    std::vector<TensorInfo> inputs;  // without those that have an initializer
    std::vector<TensorInfo> outputs;
    std::map<std::string, TensorPtr, std::less<>> initializers;
    std::vector<OnnxNode> nodes;
};

// Throws Error(bad_pack) naming `origin` for damaged bytes, subgraphs, sparse, string or external
// tensors. Memory is bounded by the input's size.
[[nodiscard]] OnnxModel parse_onnx(std::span<const std::byte> bytes, const std::string& origin);
[[nodiscard]] OnnxModel read_onnx(const std::filesystem::path& file);

}  // namespace newscaster::device::cuda
