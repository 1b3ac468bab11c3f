// The passes over graphs on the host: the function stays the same, and the work becomes less.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "device/cuda/channel_passes.h"
#include "device/cuda/compose_pass.h"
#include "device/cuda/fusion.h"
#include "device/cuda/half_passes.h"
#include "device/cuda/halo_conv.h"
#include "device/cuda/host_eval.h"
#include "device/cuda/onnx_reader.h"
#include "device/onnx_builder_test_util.h"

namespace newscaster::device::cuda {
namespace {

using newscaster::test::OnnxBuilder;
using newscaster::test::TempFolder;
using Ints = std::vector<int64_t>;

class GraphPasses : public ::testing::Test {
  protected:
    std::vector<float> random_values(const Shape& shape) {
        std::uniform_real_distribution<float> values(-0.5F, 0.5F);
        std::vector<float> result(static_cast<size_t>(element_count(shape)));
        for (float& value : result) value = values(random_);
        return result;
    }
    void constant(const std::string& name, const Shape& shape) {
        builder_.constant<float>(name, shape, random_values(shape));
    }
    void input(const std::string& name, const Shape& shape) {
        builder_.input(name, shape);
        inputs_[name] = random_values(shape);
    }
    GraphIr graph(const std::string& output) {
        const auto file = builder_.output(output, {}).save(folder_.path() / "graph.onnx");
        return build_graph(read_onnx(file), "graph.onnx", {});
    }
    // Every node in order, in double precision.
    std::vector<double> result(const GraphIr& graph) {
        std::map<int, HostArray> arrays;
        for (size_t i = 0; i < graph.values.size(); ++i) {
            if (graph.values[i].constant) {
                arrays[static_cast<int>(i)] = to_host_array(*graph.values[i].constant);
            }
        }
        for (const int input : graph.inputs) {
            const auto& values = inputs_.at(graph.values[input].name);
            arrays[input] = to_host_array(
                Tensor::of<float>(graph.values[input].shape, std::span<const float>(values)));
        }
        for (const auto& node : graph.nodes) {
            std::vector<const HostArray*> in;
            for (const int value : node.inputs) {
                in.push_back(value == kAbsent ? nullptr : &arrays.at(value));
            }
            auto results = evaluate(graph, node, in);
            for (size_t i = 0; i < results.size(); ++i) {
                arrays[node.outputs[i]] = std::move(results[i]);
            }
        }
        return arrays.at(graph.outputs[0]).values;
    }
    void expect_same(const GraphIr& before, const GraphIr& after) {
        const auto wanted = result(before);
        const auto found = result(after);
        ASSERT_EQ(found.size(), wanted.size());
        for (size_t i = 0; i < wanted.size(); ++i) ASSERT_NEAR(found[i], wanted[i], 1e-5) << i;
    }

    std::mt19937 random_{7};
    OnnxBuilder builder_{18};
    std::map<std::string, std::vector<float>> inputs_;
    const TempFolder folder_;
};

int64_t count(const GraphIr& graph, const std::string& op) {
    return std::ranges::count(graph.nodes, op, &Node::op);
}

TEST_F(GraphPasses, AConvolutionJoinsThe1x1AfterIt) {
    input("x", {1, 6, 5, 5});
    input("style", {1, 3, 5, 5});
    constant("beta_w", {6, 3, 3, 3});
    constant("beta_b", {6});
    constant("out_w", {2, 6, 1, 1});
    constant("out_b", {2});
    builder_.node("Conv", {"style", "beta_w", "beta_b"}, {"beta"}, {{"pads", Ints(4, 1)}});
    builder_.node("Add", {"x", "beta"}, {"sum"});
    builder_.node("Conv", {"sum", "out_w", "out_b"}, {"y"});
    const GraphIr before = graph("y");
    const GraphIr after = compose_convs(before);
    expect_same(before, after);
    // Nothing of six channels is convolved into six any more.
    for (const Node& node : after.nodes) {
        if (node.op == "Conv") {
            EXPECT_EQ(after.values[node.input(1)].shape[0], 2);
        }
    }
}

TEST_F(GraphPasses, AWideningConvolutionIsLeftAlone) {
    input("x", {1, 4, 5, 5});
    input("style", {1, 3, 5, 5});
    constant("beta_w", {4, 3, 3, 3});
    constant("out_w", {8, 4, 1, 1});
    builder_.node("Conv", {"style", "beta_w"}, {"beta"}, {{"pads", Ints(4, 1)}});
    builder_.node("Add", {"x", "beta"}, {"sum"});
    builder_.node("Conv", {"sum", "out_w"}, {"y"});
    const GraphIr before = graph("y");
    const GraphIr after = compose_convs(before);
    EXPECT_EQ(after.nodes.size(), before.nodes.size());
    expect_same(before, after);
}

TEST_F(GraphPasses, ConcatenatedPartsAreMergedOneAfterAnother) {
    input("heat", {2, 3, 1, 4, 4});
    input("moved", {2, 3, 4, 4, 4});
    input("rest", {2, 5, 4, 4});
    constant("w", {4, 15, 3, 3});
    constant("v", {2, 20, 1, 1});
    builder_.node("Concat", {"heat", "moved"}, {"both"}, {{"axis", int64_t{2}}});
    builder_.constant<int64_t>("shape", {4}, {2, 15, 4, 4});
    builder_.node("Reshape", {"both", "shape"}, {"merged"});
    builder_.node("Conv", {"merged", "w"}, {"a"}, {{"pads", Ints(4, 1)}});
    builder_.node("Concat", {"rest", "merged"}, {"all"}, {{"axis", int64_t{1}}});
    builder_.node("Conv", {"all", "v"}, {"b"});
    builder_.constant<int64_t>("halves", {2}, {2, 2});
    builder_.node("Split", {"a", "halves"}, {"a0", "a1"}, {{"axis", int64_t{1}}});
    builder_.node("Add", {"a0", "b"}, {"y"});
    const GraphIr before = graph("y");
    const GraphIr after = order_channels(before);
    expect_same(before, after);
    EXPECT_EQ(count(after, "Reshape"), 2);  // one per part
}

TEST_F(GraphPasses, AnOrderThatSomebodyElseReadsStays) {
    input("heat", {1, 3, 1, 4, 4});
    input("moved", {1, 3, 4, 4, 4});
    constant("w", {15, 15, 1, 1});
    builder_.node("Concat", {"heat", "moved"}, {"both"}, {{"axis", int64_t{2}}});
    builder_.constant<int64_t>("shape", {4}, {1, 15, 4, 4});
    builder_.node("Reshape", {"both", "shape"}, {"merged"});
    builder_.node("Conv", {"merged", "w"}, {"a"});
    builder_.node("Add", {"a", "merged"}, {"y"});
    const GraphIr before = graph("y");
    const GraphIr after = order_channels(before);
    EXPECT_EQ(after.nodes.size(), before.nodes.size());
    expect_same(before, after);
}

TEST_F(GraphPasses, SampledChannelsStandSideBySide) {
    input("f", {1, 8, 3, 4, 4});
    input("grid", {1, 3, 4, 4, 3});
    constant("w", {2, 24, 1, 1});
    builder_.node("GridSample", {"f", "grid"}, {"moved"});
    builder_.constant<int64_t>("shape", {4}, {1, 24, 4, 4});
    builder_.node("Reshape", {"moved", "shape"}, {"merged"});
    builder_.node("Conv", {"merged", "w"}, {"y"});
    const GraphIr before = graph("y");
    const GraphIr after = order_channels(before);
    EXPECT_EQ(count(after, "Transpose"), 1);
    expect_same(before, after);
}

TEST_F(GraphPasses, EnlargedPicturesAreReadSmall) {
    input("x", {1, 64, 16, 16});
    constant("w", {128, 64, 3, 3});
    builder_.constant<int64_t>("sizes", {4}, {1, 64, 32, 32});
    builder_.node("Resize", {"x", "", "", "sizes"}, {"large"},
                  {{"coordinate_transformation_mode", std::string("asymmetric")},
                   {"nearest_mode", std::string("floor")}});
    builder_.node("Conv", {"large", "w"}, {"y"}, {{"pads", Ints(4, 1)}});
    const GraphIr before = graph("y");
    EXPECT_EQ(count(pass_for_half(before, false), "Resize"), 1);
    const GraphIr after = pass_for_half(before, true);
    EXPECT_EQ(count(after, "Resize"), 0);
    // And the plan has a kernel of ours for it.
    const Plan plan = make_plan(before, Precision::f16, kHaloCapability);
    EXPECT_TRUE(std::ranges::any_of(plan.steps, [](const Step& step) {
        const auto* kernel = std::get_if<KernelStep>(&step.work);
        return kernel != nullptr && kernel->box.has_value();
    }));
}

}  // namespace
}  // namespace newscaster::device::cuda
