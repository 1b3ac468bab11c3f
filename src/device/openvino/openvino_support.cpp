#include "device/openvino/openvino_support.h"

#include <fmt/format.h>

#include <array>
#include <openvino/op/result.hpp>
#include <string_view>
#include <utility>

#include "newscaster/error.h"

namespace newscaster::device {

namespace {

const std::array<std::pair<DType, ov::element::Type>, 9>& type_table() {
    static const std::array<std::pair<DType, ov::element::Type>, 9> table{
        {{DType::f32, ov::element::f32},
         {DType::f16, ov::element::f16},
         {DType::bf16, ov::element::bf16},
         {DType::f64, ov::element::f64},
         {DType::u8, ov::element::u8},
         {DType::i8, ov::element::i8},
         {DType::i32, ov::element::i32},
         {DType::i64, ov::element::i64},
         {DType::boolean, ov::element::boolean}}};
    return table;
}

// A port may carry several tensor names (the graph's own and those of folded Identity nodes); the
// ONNX frontend keeps the graph's own one in the node's friendly name.
std::string port_name(const ov::Output<const ov::Node>& port) {
    const auto& names = port.get_names();
    if (names.empty()) {
        throw Error(ErrorCode::bad_pack, fmt::format("graph port '{}' has no tensor name",
                                                     port.get_node()->get_friendly_name()));
    }
    std::string name = port.get_node()->get_friendly_name();
    constexpr std::string_view kResultSuffix = "/sink_port_0";
    if (name.ends_with(kResultSuffix)) name.resize(name.size() - kResultSuffix.size());
    return names.contains(name) ? name : *std::min_element(names.begin(), names.end());
}

}  // namespace

DType dtype_from_ov(const ov::element::Type& type, const std::string& tensor) {
    for (const auto& [ours, theirs] : type_table()) {
        if (theirs == type) return ours;
    }
    throw Error(ErrorCode::bad_pack,
                fmt::format("graph tensor '{}': found element type {}, wanted f32, f16, bf16, f64, "
                            "u8, i8, i32, i64 or boolean",
                            tensor, type.get_type_name()));
}

ov::element::Type dtype_to_ov(DType dtype) {
    for (const auto& [ours, theirs] : type_table()) {
        if (ours == dtype) return theirs;
    }
    throw Error(ErrorCode::runtime, "unknown tensor element type");
}

TensorInfo port_info(const ov::Output<const ov::Node>& port) {
    TensorInfo info;
    info.name = port_name(port);
    info.dtype = dtype_from_ov(port.get_element_type(), info.name);
    const auto& shape = port.get_partial_shape();
    if (shape.rank().is_dynamic()) {
        throw Error(
            ErrorCode::bad_pack,
            fmt::format("graph tensor '{}': found unknown rank, wanted a fixed one", info.name));
    }
    for (const auto& extent : shape) {
        info.shape.push_back(extent.is_static() ? extent.get_length() : -1);
    }
    return info;
}

std::string one_line(const std::exception& error) {
    std::string_view text = error.what();
    std::string best;
    while (!text.empty()) {
        const size_t end = std::min(text.find('\n'), text.size());
        std::string_view line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        while (!line.empty() && (line.front() == ' ' || line.front() == '\t')) {
            line.remove_prefix(1);
        }
        // Lines that only say where in OpenVINO's sources it happened help nobody.
        const bool location = line.starts_with("Exception from ") || line.starts_with("Check '");
        if (line.empty()) continue;
        if (best.empty()) best = line;
        if (!location) return std::string(line);
    }
    return best;
}

}  // namespace newscaster::device
