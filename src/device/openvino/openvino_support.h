// Small translations between OpenVINO's types and ours.
#pragma once

#include <exception>
#include <openvino/core/model.hpp>
#include <openvino/core/type/element_type.hpp>
#include <string>
#include <vector>

#include "device/device.h"

namespace newscaster::device {

// Throws Error(bad_pack) naming `tensor` when the type has no counterpart of ours.
[[nodiscard]] DType dtype_from_ov(const ov::element::Type& type, const std::string& tensor);
[[nodiscard]] ov::element::Type dtype_to_ov(DType dtype);

// Name, type and shape (-1 = dynamic) of a graph's input or output port. Throws Error(bad_pack) for
// a port without a name, an unknown rank or an element type we do not have.
[[nodiscard]] TensorInfo port_info(const ov::Output<const ov::Node>& port);

// An exception's text on one line of bounded length, without OpenVINO's source locations.
[[nodiscard]] std::string one_line(const std::exception& error);

}  // namespace newscaster::device
