#include "device/openvino/grid_sample_extension.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <openvino/core/op_extension.hpp>
#include <openvino/frontend/exception.hpp>
#include <openvino/frontend/onnx/extension/conversion.hpp>
#include <openvino/op/convert.hpp>
#include <openvino/op/convert_like.hpp>
#include <openvino/op/grid_sample.hpp>
#include <openvino/op/op.hpp>
#include <string>
#include <utility>

#include "device/openvino/grid_sample.h"

namespace newscaster::device {

namespace {

constexpr std::array<std::string_view, 2> kModes{"linear", "nearest"};
constexpr std::array<std::string_view, 3> kPaddings{"zeros", "border", "reflection"};

template <size_t N>
size_t index_of(const std::array<std::string_view, N>& names, const std::string& name,
                const char* attribute) {
    const auto found = std::ranges::find(names, name);
    OPENVINO_ASSERT(found != names.end(), "GridSample: found ", attribute, " '", name,
                    "', which a 5-D grid sample does not have");
    return static_cast<size_t>(found - names.begin());
}

// What one evaluation writes besides its result; all but `scratch` stay empty unless f16 is
// widened.
struct Scratch {
    std::vector<float> scratch;
    std::vector<float> volume;
    std::vector<float> grid;
    std::vector<float> sampled;
};

// Scratch memory that concurrent evaluations take and give back.
class ScratchPool {
  public:
    Scratch take() {
        const std::lock_guard lock(mutex_);
        if (free_.empty()) return {};
        Scratch scratch = std::move(free_.back());
        free_.pop_back();
        return scratch;
    }
    void give(Scratch scratch) {
        const std::lock_guard lock(mutex_);
        free_.push_back(std::move(scratch));
    }

  private:
    std::mutex mutex_;
    std::vector<Scratch> free_;
};

// f16 is what a CPU with native half floats makes of a whole graph, inputs of this operator
// included.
bool is_sampled(const ov::element::Type& type) {
    return type == ov::element::f32 || type == ov::element::f16;
}

// The tensor's values, widened into `buffer` where they are f16.
const float* as_f32(const ov::Tensor& tensor, std::vector<float>& buffer) {
    if (tensor.get_element_type() == ov::element::f32) return tensor.data<const float>();
    const auto* values = tensor.data<const ov::float16>();
    buffer.assign(values, values + tensor.get_size());
    return buffer.data();
}

// Inputs: volume [N, C, D, H, W], grid [N, D', H', W', 3], each f32 or f16; output of the volume's
// type [N, C, D', H', W']. Sampled in f32.
class GridSample3D final : public ov::op::Op {
  public:
    OPENVINO_OP("GridSample3D", "newscaster")

    GridSample3D() = default;
    GridSample3D(const ov::Output<ov::Node>& volume, const ov::Output<ov::Node>& grid,
                 std::string mode, std::string padding, bool align_corners)
        : Op({volume, grid}),
          mode_(std::move(mode)),
          padding_(std::move(padding)),
          align_corners_(align_corners) {
        constructor_validate_and_infer_types();
    }

    void validate_and_infer_types() override {
        (void)rule();
        const auto& volume = get_input_partial_shape(0);
        const auto& grid = get_input_partial_shape(1);
        NODE_VALIDATION_CHECK(this,
                              volume.rank().compatible(5) && grid.rank().compatible(5) &&
                                  (grid.rank().is_dynamic() || grid[4].compatible(3)),
                              "found volume ", volume, " and grid ", grid,
                              ", wanted [N,C,D,H,W] and [N,D,H,W,3]");
        auto shape = ov::PartialShape::dynamic(5);
        if (volume.rank().is_static()) {
            shape[0] = volume[0];
            shape[1] = volume[1];
        }
        if (grid.rank().is_static()) {
            NODE_VALIDATION_CHECK(this, ov::Dimension::merge(shape[0], shape[0], grid[0]),
                                  "found batches ", shape[0], " and ", grid[0],
                                  ", wanted equal ones");
            for (size_t axis = 2; axis < 5; ++axis) shape[axis] = grid[axis - 1];
        }
        set_output_type(0, get_input_element_type(0), shape);
    }

    std::shared_ptr<ov::Node> clone_with_new_inputs(const ov::OutputVector& inputs) const override {
        return std::make_shared<GridSample3D>(inputs.at(0), inputs.at(1), mode_, padding_,
                                              align_corners_);
    }

    bool visit_attributes(ov::AttributeVisitor& visitor) override {
        visitor.on_attribute("mode", mode_);
        visitor.on_attribute("padding_mode", padding_);
        visitor.on_attribute("align_corners", align_corners_);
        return true;
    }

    bool has_evaluate() const override {
        return is_sampled(get_input_element_type(0)) && is_sampled(get_input_element_type(1));
    }

    bool evaluate(ov::TensorVector& outputs, const ov::TensorVector& inputs) const override {
        const auto& in = inputs[0].get_shape();
        const auto& grid = inputs[1].get_shape();
        if (!is_sampled(inputs[0].get_element_type()) ||
            !is_sampled(inputs[1].get_element_type()) || ov::shape_size(in) == 0) {
            return false;
        }
        outputs[0].set_shape({in[0], in[1], grid[1], grid[2], grid[3]});
        const auto extent = [](const ov::Shape& shape, size_t first) {
            return VolumeExtent{static_cast<int64_t>(shape[first]),
                                static_cast<int64_t>(shape[first + 1]),
                                static_cast<int64_t>(shape[first + 2])};
        };
        const GridSampleGeometry geometry{static_cast<int64_t>(in[0]), static_cast<int64_t>(in[1]),
                                          extent(in, 2), extent(grid, 1)};
        Scratch own = scratch_->take();
        const bool half = outputs[0].get_element_type() == ov::element::f16;
        if (half) own.sampled.resize(outputs[0].get_size());
        grid_sample_3d(rule(), geometry, as_f32(inputs[0], own.volume), as_f32(inputs[1], own.grid),
                       half ? own.sampled.data() : outputs[0].data<float>(), own.scratch);
        if (half) {
            std::ranges::transform(own.sampled, outputs[0].data<ov::float16>(),
                                   [](float value) { return ov::float16(value); });
        }
        scratch_->give(std::move(own));
        return true;
    }

  private:
    [[nodiscard]] GridSampleRule rule() const {
        return {static_cast<SampleMode>(index_of(kModes, mode_, "mode")),
                static_cast<SamplePadding>(index_of(kPaddings, padding_, "padding_mode")),
                align_corners_};
    }

    std::string mode_ = "linear";
    std::string padding_ = "zeros";
    bool align_corners_ = false;
    std::shared_ptr<ScratchPool> scratch_ = std::make_shared<ScratchPool>();
};

// The operator works in f32; other float types are converted around it.
ov::OutputVector make_3d(const ov::Output<ov::Node>& volume, const ov::Output<ov::Node>& grid,
                         const std::string& mode, const std::string& padding, bool align_corners) {
    const auto as_f32 = [](const ov::Output<ov::Node>& value) -> ov::Output<ov::Node> {
        if (value.get_element_type() == ov::element::f32) return value;
        return std::make_shared<ov::op::v0::Convert>(value, ov::element::f32);
    };
    const auto sampled =
        std::make_shared<GridSample3D>(as_f32(volume), as_f32(grid), mode, padding, align_corners);
    if (volume.get_element_type() == ov::element::f32) return {sampled};
    return {std::make_shared<ov::op::v1::ConvertLike>(sampled, volume)};
}

ov::OutputVector make_2d(const ov::Output<ov::Node>& picture, const ov::Output<ov::Node>& grid,
                         const std::string& mode, const std::string& padding, bool align_corners) {
    using GridSample = ov::op::v9::GridSample;
    const auto interpolation = mode == "linear"    ? GridSample::InterpolationMode::BILINEAR
                               : mode == "nearest" ? GridSample::InterpolationMode::NEAREST
                                                   : GridSample::InterpolationMode::BICUBIC;
    const std::array<GridSample::PaddingMode, 3> paddings{GridSample::PaddingMode::ZEROS,
                                                          GridSample::PaddingMode::BORDER,
                                                          GridSample::PaddingMode::REFLECTION};
    const GridSample::Attributes attributes(align_corners, interpolation,
                                            paddings[index_of(kPaddings, padding, "padding_mode")]);
    return {std::make_shared<GridSample>(picture, grid, attributes)};
}

// ONNX opset 16 says bilinear and bicubic, opset 20 linear and cubic.
ov::OutputVector convert_grid_sample(const ov::frontend::NodeContext& node) {
    std::string mode = node.get_attribute<std::string>("mode", "linear");
    if (mode == "bilinear") mode = "linear";
    if (mode == "bicubic") mode = "cubic";
    FRONT_END_GENERAL_CHECK(mode == "linear" || mode == "nearest" || mode == "cubic",
                            "GridSample: found mode '", mode, "', wanted linear, nearest or cubic");
    const auto padding = node.get_attribute<std::string>("padding_mode", "zeros");
    const bool align_corners = node.get_attribute<int64_t>("align_corners", 0) != 0;
    const auto data = node.get_input(0);
    const auto grid = node.get_input(1);
    const bool volume = data.get_partial_shape().rank().compatible(5) &&
                        grid.get_partial_shape().rank().compatible(5) &&
                        (data.get_partial_shape().rank().is_static() ||
                         grid.get_partial_shape().rank().is_static());
    return volume ? make_3d(data, grid, mode, padding, align_corners)
                  : make_2d(data, grid, mode, padding, align_corners);
}

ov::OutputVector convert_plugin_node(const ov::frontend::NodeContext& node) {
    const auto choice = [&](const char* attribute, const auto& names) {
        const auto value = node.get_attribute<int64_t>(attribute, 0);
        FRONT_END_GENERAL_CHECK(value >= 0 && value < static_cast<int64_t>(names.size()),
                                "GridSample3D: found ", attribute, " ", value, ", wanted 0..",
                                names.size() - 1);
        return std::string(names[static_cast<size_t>(value)]);
    };
    return make_3d(node.get_input(0), node.get_input(1), choice("interpolation_mode", kModes),
                   choice("padding_mode", kPaddings),
                   node.get_attribute<int64_t>("align_corners", 0) != 0);
}

}  // namespace

std::vector<std::shared_ptr<ov::Extension>> grid_sample_extensions() {
    using ov::frontend::onnx::ConversionExtension;
    return {std::make_shared<ov::OpExtension<GridSample3D>>(),
            std::make_shared<ConversionExtension>("GridSample", convert_grid_sample),
            std::make_shared<ConversionExtension>("GridSample3D", convert_plugin_node)};
}

}  // namespace newscaster::device
