#include "device/cuda/onnx_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "device/cuda/graph_ir.h"
#include "device/onnx_builder_test_util.h"
#include "newscaster/error.h"

namespace newscaster::device::cuda {
namespace {

using newscaster::test::OnnxBuilder;
using testing::ElementsAre;
using testing::HasSubstr;

std::string sample() {
    return OnnxBuilder(16)
        .input("x", {-1, 3, 4, 4})
        .constant<float>("w", {2, 3, 1, 1}, {1, 2, 3, 4, 5, 6})
        .node("Conv", {"x", "w"}, {"c"}, {{"strides", std::vector<int64_t>{2, 2}}})
        .node("LeakyRelu", {"c"}, {"y"}, {{"alpha", 0.25F}})
        .output("y", {-1, 2, 2, 2})
        .bytes();
}

OnnxModel parse(const std::string& bytes) {
    return parse_onnx(std::as_bytes(std::span(bytes)), "sample.onnx");
}

TEST(OnnxReader, ReadsEveryPart) {
    const OnnxModel model = parse(sample());
    EXPECT_EQ(model.opset, 16);
    ASSERT_EQ(model.inputs.size(), 1U);
    EXPECT_THAT(model.inputs[0].shape, ElementsAre(-1, 3, 4, 4));
    EXPECT_EQ(model.outputs.at(0).name, "y");
    EXPECT_THAT(model.initializers.at("w")->as<float>(), ElementsAre(1, 2, 3, 4, 5, 6));
    ASSERT_EQ(model.nodes.size(), 2U);
    EXPECT_THAT(model.nodes[0].attributes.at("strides").integers, ElementsAre(2, 2));
    EXPECT_FLOAT_EQ(model.nodes[1].attributes.at("alpha").number, 0.25F);
}

// Damage must end in an Error or a model, never in anything else.
void survives(const std::string& bytes) {
    try {
        const OnnxModel model = parse(bytes);
        static_cast<void>(build_graph(model, "damaged", {{"x", {1, 3, 4, 4}}}));
    } catch (const Error&) {
    }
}

TEST(OnnxReader, EveryTruncationIsAnErrorOrAModel) {
    const std::string whole = sample();
    for (size_t length = 0; length < whole.size(); ++length) survives(whole.substr(0, length));
    EXPECT_THROW(static_cast<void>(parse(whole.substr(0, whole.size() / 2))), Error);
}

TEST(OnnxReader, SurvivesRandomDamage) {
    std::mt19937 random(3);
    for (int turn = 0; turn < 5000; ++turn) {
        std::string bytes = sample();
        for (int i = 0; i < 3; ++i) bytes[random() % bytes.size()] = static_cast<char>(random());
        survives(bytes);
    }
}

TEST(OnnxReader, UnknownOperatorsAreNamedWithShapes) {
    const std::string bytes = OnnxBuilder(16)
                                  .input("x", {2, 3})
                                  .node("Mystery", {"x"}, {"y"})
                                  .output("y", {2, 3})
                                  .bytes();
    try {
        static_cast<void>(build_graph(parse(bytes), "sample.onnx", {}));
        FAIL() << "accepted";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::bad_pack);
        EXPECT_THAT(error.what(), HasSubstr("Mystery_y"));
        EXPECT_THAT(error.what(), HasSubstr("[2,3]"));
    }
}

TEST(GraphBuilding, FoldsShapeArithmetic) {
    const std::string bytes = OnnxBuilder(16)
                                  .input("x", {-1, 6})
                                  .constant<int64_t>("zero", {1}, {0})
                                  .constant<int64_t>("rest", {1}, {-1})
                                  .node("Shape", {"x"}, {"s"})
                                  .node("Gather", {"s", "zero"}, {"n"})
                                  .node("Concat", {"n", "rest"}, {"t"}, {{"axis", int64_t{0}}})
                                  .node("Reshape", {"x", "t"}, {"y"})
                                  .output("y", {-1, -1})
                                  .bytes();
    const GraphIr graph = build_graph(parse(bytes), "sample.onnx", {{"x", {4, 6}}});
    ASSERT_EQ(graph.nodes.size(), 1U);
    EXPECT_THAT(graph.values[graph.outputs[0]].shape, ElementsAre(4, 6));
}

TEST(GraphBuilding, WantsFixedInputShapes) {
    EXPECT_THROW(static_cast<void>(build_graph(parse(sample()), "sample.onnx", {})), Error);
    EXPECT_THROW(
        static_cast<void>(build_graph(parse(sample()), "sample.onnx", {{"x", {1, 4, 4, 4}}})),
        Error);
    EXPECT_THROW(static_cast<void>(build_graph(parse(sample()), "sample.onnx", {{"other", {1}}})),
                 Error);
}

}  // namespace
}  // namespace newscaster::device::cuda
