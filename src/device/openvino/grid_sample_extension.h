// Teaches OpenVINO the 5-D GridSample, which its own operator set lacks.
//
// ONNX nodes `GridSample` whose data is 5-D become our operator; 4-D ones stay OpenVINO's own. The
// plugin node `GridSample3D` of TensorRT exports is accepted too (integer attributes
// interpolation_mode 0 linear, 1 nearest; padding_mode 0 zeros, 1 border, 2 reflection;
// align_corners 0 or 1).
#pragma once

#include <memory>
#include <openvino/core/extension.hpp>
#include <vector>

namespace newscaster::device {

// Part of the compiled-graph cache's key: raise it when results or attributes change.
inline constexpr int kGridSampleVersion = 1;

// For the ONNX frontend and for ov::Core (which needs the operator to import compiled graphs).
[[nodiscard]] std::vector<std::shared_ptr<ov::Extension>> grid_sample_extensions();

}  // namespace newscaster::device
