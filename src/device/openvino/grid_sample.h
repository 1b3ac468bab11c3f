// Sampling of a volume at the points of a grid: the 5-D case of ONNX GridSample.
// Definition: https://onnx.ai/onnx/operators/onnx__GridSample.html (opset 20).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace newscaster::device {

enum class SampleMode { linear, nearest };
enum class SamplePadding { zeros, border, reflection };

struct GridSampleRule {
    SampleMode mode = SampleMode::linear;
    SamplePadding padding = SamplePadding::zeros;
    // true: -1 and 1 are the centres of the border voxels; false: their outer edges.
    bool align_corners = false;
};

struct VolumeExtent {
    int64_t depth = 0;
    int64_t height = 0;
    int64_t width = 0;

    [[nodiscard]] int64_t count() const { return depth * height * width; }
};

struct GridSampleGeometry {
    int64_t batch = 0;
    int64_t channels = 0;
    VolumeExtent in;   // every extent >= 1
    VolumeExtent out;  // of the grid
};

// volume: [batch, channels, in]; grid: [batch, out, 3] holding (x, y, z), where -1..1 spans the
// width, height and depth; target: [batch, channels, out].
// Any grid value is safe: a NaN counts as far below -1 (reflection: as the low border voxel, and
// so does an infinity). `nearest` rounds halves to even. The result does not depend on the number
// of threads (the caller's TBB arena).
// scratch: grown to channels * in.count() values and left for the next call.
void grid_sample_3d(const GridSampleRule& rule, const GridSampleGeometry& geometry,
                    const float* volume, const float* grid, float* target,
                    std::vector<float>& scratch);

}  // namespace newscaster::device
