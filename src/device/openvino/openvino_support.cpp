#include "device/openvino/openvino_support.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <openvino/op/result.hpp>
#include <sstream>
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
    // Lines that only say where in OpenVINO's sources it happened help nobody.
    constexpr std::array<std::string_view, 5> kNoise{"Exception from ", "Check '", "FrontEnd API ",
                                                     "FE Check '", "Summary:"};
    constexpr size_t kLimit = 300;
    std::istringstream text(error.what());
    std::string joined;
    for (std::string line; std::getline(text, line);) {
        const size_t start = line.find_first_not_of(" \t-");
        if (start == std::string::npos) continue;
        line.erase(0, start);
        if (std::ranges::any_of(kNoise, [&](auto noise) { return line.starts_with(noise); })) {
            continue;
        }
        joined += (joined.empty() ? "" : " ") + line;
    }
    if (joined.empty()) joined = std::string_view(error.what()).substr(0, kLimit);
    if (joined.size() > kLimit) joined.resize(kLimit);
    std::ranges::replace(joined, '\n', ' ');
    return joined;
}

}  // namespace newscaster::device
