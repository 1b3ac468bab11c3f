// Every operator on the GPU against the host evaluator in double precision, on random inputs.
#include <gtest/gtest.h>

#include <functional>

#include "device/cuda/cuda_test_util.h"
#include "device/cuda/host_eval.h"
#include "device/cuda/onnx_reader.h"
#include "device/onnx_builder_test_util.h"

namespace newscaster::device::cuda {
namespace {

using newscaster::test::OnnxAttributes;
using newscaster::test::OnnxBuilder;
using newscaster::test::TempFolder;
using Ints = std::vector<int64_t>;

struct OpCase {
    std::string name;
    std::string op;
    std::vector<Shape> inputs;  // x0, x1, ...: random f32
    OnnxAttributes attributes;
    std::vector<Ints> constants = {};  // i64 inputs after those; an empty list is an absent input
    float low = -1.0F;
    float high = 1.0F;
    bool constant_weights = false;  // all inputs but the first are initializers
    std::string then = {};          // an operator with one input that follows
    int64_t enlarge = 1;            // x0 goes through a nearest Resize of its last two axes
};

std::ostream& operator<<(std::ostream& out, const OpCase& c) {
    return out << c.name;
}

// The reference: every node in order, in double precision, on the same f32 inputs.
std::vector<double> reference(const GraphIr& graph, const std::map<std::string, Tensor>& inputs) {
    std::map<int, HostArray> arrays;
    for (size_t i = 0; i < graph.values.size(); ++i) {
        if (graph.values[i].constant)
            arrays[static_cast<int>(i)] = to_host_array(*graph.values[i].constant);
    }
    for (const int input : graph.inputs)
        arrays[input] = to_host_array(inputs.at(graph.values[input].name));
    for (const auto& node : graph.nodes) {
        std::vector<const HostArray*> in;
        for (const int input : node.inputs)
            in.push_back(input == kAbsent ? nullptr : &arrays.at(input));
        auto results = evaluate(graph, node, in);
        for (size_t i = 0; i < results.size(); ++i) arrays[node.outputs[i]] = std::move(results[i]);
    }
    return arrays.at(graph.outputs[0]).values;
}

class CudaOps : public testing::TestWithParam<OpCase> {
  protected:
    static void SetUpTestSuite() {
        if (cuda_device_count() > 0) device_ = open_cuda_device({}).release();
    }
    static void TearDownTestSuite() {
        delete device_;
        device_ = nullptr;
    }
    static Device* device_;
};
Device* CudaOps::device_ = nullptr;

TEST_P(CudaOps, AgreesWithTheReference) {
    NEWSCASTER_NEEDS_GPU();
    const OpCase& c = GetParam();
    std::mt19937 random(std::hash<std::string>{}(c.name) & 0xFFFFFFU);
    OnnxBuilder builder(18);
    std::map<std::string, Tensor> inputs;
    std::vector<std::string> names;
    for (size_t i = 0; i < c.inputs.size(); ++i) {
        names.push_back("x" + std::to_string(i));
        Tensor tensor = test::random_tensor(c.inputs[i], random, c.low, c.high);
        if (i > 0 && c.constant_weights) {
            const auto values = tensor.as<float>();
            builder.constant<float>(names.back(), c.inputs[i], {values.begin(), values.end()});
        } else {
            builder.input(names.back(), c.inputs[i]);
            inputs.emplace(names.back(), std::move(tensor));
        }
    }
    if (c.enlarge > 1) {
        Ints sizes = c.inputs[0];
        for (size_t i = sizes.size() - 2; i < sizes.size(); ++i) sizes[i] *= c.enlarge;
        builder.constant<int64_t>("sizes", {static_cast<int64_t>(sizes.size())}, sizes);
        builder.node("Resize", {"x0", "", "", "sizes"}, {"large"},
                     {{"coordinate_transformation_mode", std::string("asymmetric")},
                      {"nearest_mode", std::string("floor")}});
        names[0] = "large";
    }
    for (const auto& list : c.constants) {
        names.push_back(list.empty() ? "" : "i" + std::to_string(names.size()));
        if (!list.empty())
            builder.constant<int64_t>(names.back(), {static_cast<int64_t>(list.size())}, list);
    }
    builder.node(c.op, names, {c.then.empty() ? "y" : "m"}, c.attributes);
    if (!c.then.empty()) builder.node(c.then, {"m"}, {"y"});
    const TempFolder folder;
    const auto file = builder.output("y", {}).save(folder.path() / "op.onnx");
    const GraphIr graph = build_graph(read_onnx(file), "op.onnx", {});
    const auto wanted = reference(graph, inputs);
    for (const auto& [precision, limit] :
         {std::pair{Precision::f32, 2e-5}, std::pair{Precision::f16, 3e-3}}) {
        const auto loaded =
            device_->load(file, "", {.precision = precision, .concurrency = 1, .input_shapes = {}});
        const auto outputs = test::run_graph(*device_, *loaded, inputs);
        const Tensor found = outputs.at("y").to_f32();
        ASSERT_EQ(static_cast<size_t>(found.size()), wanted.size());
        const auto d = test::difference(found.as<float>(), wanted);
        EXPECT_LE(d.relative, limit) << "precision " << name_of(precision);
    }
}

// Scale and shift of a SPADE layer: two convolutions of one input that become one, and with the
// larger sizes one kernel with what follows.
void expect_siblings_agree(Device& device, int64_t channels, int64_t style, int64_t side) {
    std::mt19937 random(5);
    OnnxBuilder builder(18);
    std::map<std::string, Tensor> inputs;
    for (const auto* name : {"x", "style"}) {
        const Shape shape{2, name == std::string("x") ? channels : style, side, side};
        inputs.emplace(name, test::random_tensor(shape, random, -1.0F, 1.0F));
        builder.input(name, shape);
    }
    const Shape kernel{channels, style, 3, 3};
    for (const std::string name : {"gamma", "beta"}) {
        const auto weights = test::random_tensor(kernel, random, -0.3F, 0.3F);
        const auto values = weights.as<float>();
        builder.constant<float>(name + "_w", kernel, {values.begin(), values.end()});
        const auto bias = test::random_tensor({channels}, random, -0.3F, 0.3F);
        builder.constant<float>(name + "_b", {channels},
                                {bias.as<float>().begin(), bias.as<float>().end()});
        builder.node("Conv", {"style", name + "_w", name + "_b"}, {name}, {{"pads", Ints(4, 1)}});
    }
    builder.node("Mul", {"x", "gamma"}, {"scaled"}).node("Add", {"scaled", "beta"}, {"shifted"});
    // A pooling so that the sum is stored as networks store it.
    builder.node("Relu", {"shifted"}, {"positive"});
    builder.node("AveragePool", {"positive"}, {"y"}, {{"kernel_shape", Ints{2, 2}}});
    const TempFolder folder;
    const auto file = builder.output("y", {}).save(folder.path() / "siblings.onnx");
    const auto wanted = reference(build_graph(read_onnx(file), "siblings.onnx", {}), inputs);
    const auto loaded =
        device.load(file, "", {.precision = Precision::f16, .concurrency = 1, .input_shapes = {}});
    const Tensor found = test::run_graph(device, *loaded, inputs).at("y").to_f32();
    ASSERT_EQ(static_cast<size_t>(found.size()), wanted.size());
    EXPECT_LE(test::difference(found.as<float>(), wanted).relative, 3e-3);
}

TEST_F(CudaOps, SiblingConvolutionsAgreeWithTheReference) {
    NEWSCASTER_NEEDS_GPU();
    expect_siblings_agree(*device_, 24, 16, 20);
}

TEST_F(CudaOps, LargeSiblingConvolutionsAgreeWithTheReference) {
    NEWSCASTER_NEEDS_GPU();
    expect_siblings_agree(*device_, 64, 64, 32);
    expect_siblings_agree(*device_, 128, 144, 16);
}

std::vector<OpCase> elementwise_cases() {
    std::vector<OpCase> cases;
    for (const auto* op :
         {"Neg", "Abs", "Exp", "Sin", "Cos", "Erf", "Sigmoid", "Tanh", "Relu", "LeakyRelu",
          "Softplus", "Mish", "Elu", "Floor", "Ceil", "Round", "Identity", "HardSigmoid"}) {
        cases.push_back({op, op, {{3, 37}}, {}, {}, -3.0F, 3.0F});
    }
    for (const auto* op : {"Sqrt", "Log", "Reciprocal"})
        cases.push_back({op, op, {{3, 37}}, {}, {}, 0.1F, 4.0F});
    for (const auto* op : {"Add", "Sub", "Mul", "Min", "Max", "PRelu"}) {
        cases.push_back({std::string(op) + "Broadcast", op, {{2, 5, 3, 4}, {5, 1, 4}}, {}});
    }
    cases.push_back({"DivBroadcast", "Div", {{4, 1}, {3}}, {}, {}, 0.5F, 2.0F});
    cases.push_back({"PowPositive", "Pow", {{4, 5}, {5}}, {}, {}, 0.5F, 2.0F});
    cases.push_back({"LargeAdd", "Add", {{2, 16, 64, 64}, {16, 1, 1}}, {}});
    cases.push_back({"OddChannels", "Add", {{2, 11, 64, 64}, {11, 1, 1}}, {}});
    cases.push_back({"Clip", "Clip", {{4, 100}}, {{"min", -0.5F}, {"max", 0.25F}}});
    return cases;
}

std::vector<OpCase> moving_cases() {
    return {
        {"Transpose", "Transpose", {{2, 3, 4, 5}}, {{"perm", Ints{0, 3, 1, 2}}}},
        {"TransposeLarge", "Transpose", {{2, 24, 40, 50}}, {{"perm", Ints{0, 2, 3, 1}}}},
        {"Reshape", "Reshape", {{2, 3, 8}}, {}, {{2, 4, -1}}},
        {"Flatten", "Flatten", {{2, 3, 4}}, {{"axis", int64_t{2}}}},
        {"Unsqueeze", "Unsqueeze", {{2, 3}}, {}, {{1, -1}}},
        {"Squeeze", "Squeeze", {{2, 1, 3, 1}}, {}, {{1, 3}}},
        {"Slice", "Slice", {{4, 10, 6}}, {}, {{1, -2}, {9, INT64_MIN}, {1, 2}, {2, -1}}},
        {"SliceToEnd", "Slice", {{4, 10}}, {}, {{3}, {INT64_MAX}, {1}}},
        {"Expand", "Expand", {{3, 1, 4}}, {}, {{2, 3, 5, 4}}},
        {"Tile", "Tile", {{2, 3}}, {}, {{2, 3}}},
        {"Gather", "Gather", {{5, 6}}, {{"axis", int64_t{1}}}, {{0, -1, 3}}},
        {"Concat", "Concat", {{2, 3, 4}, {2, 1, 4}, {2, 5, 4}}, {{"axis", int64_t{1}}}},
        {"ConcatLarge", "Concat", {{1, 40, 32, 32}, {1, 24, 32, 32}}, {{"axis", int64_t{1}}}},
        {"PadConstant", "Pad", {{2, 3, 4}}, {}, {{0, 1, 2, 0, 0, 1}}},
        {"PadReflect",
         "Pad",
         {{2, 5, 6}},
         {{"mode", std::string("reflect")}},
         {{0, 2, 3, 0, 1, 2}}},
        {"PadEdge", "Pad", {{2, 5, 6}}, {{"mode", std::string("edge")}}, {{0, 2, 3, 0, 1, 2}}},
        {"PixelShuffleCrd",
         "DepthToSpace",
         {{2, 12, 3, 5}},
         {{"blocksize", int64_t{2}}, {"mode", std::string("CRD")}}},
        {"PixelShuffleDcr", "DepthToSpace", {{2, 12, 3, 5}}, {{"blocksize", int64_t{2}}}},
        {"SpaceToDepth", "SpaceToDepth", {{2, 3, 4, 6}}, {{"blocksize", int64_t{2}}}},
    };
}

std::vector<OpCase> network_cases() {
    const OnnxAttributes same{{"pads", Ints{1, 1, 1, 1}}};
    const OnnxAttributes border{{"padding_mode", std::string("border")}};
    std::vector<OpCase> cases{
        {"Conv3x3", "Conv", {{2, 16, 20, 24}, {32, 16, 3, 3}, {32}}, same, {}, -1, 1, true},
        {"Conv3x3Leaky",
         "Conv",
         {{1, 16, 20, 24}, {24, 16, 3, 3}, {24}},
         same,
         {},
         -1,
         1,
         true,
         "LeakyRelu"},
        {"Conv3x3Sigmoid",
         "Conv",
         {{1, 16, 20, 24}, {24, 16, 3, 3}, {24}},
         same,
         {},
         -1,
         1,
         true,
         "Sigmoid"},
        {"ConvOddChannels", "Conv", {{2, 5, 17, 9}, {3, 5, 3, 3}, {3}}, same, {}, -1, 1, true},
        {"ConvStride",
         "Conv",
         {{1, 8, 16, 16}, {16, 8, 3, 3}},
         {{"pads", Ints{1, 1, 1, 1}}, {"strides", Ints{2, 2}}},
         {},
         -1,
         1,
         true},
        {"ConvDilated",
         "Conv",
         {{1, 8, 16, 16}, {8, 8, 3, 3}},
         {{"dilations", Ints{2, 2}}},
         {},
         -1,
         1,
         true},
        {"Conv1d",
         "Conv",
         {{2, 8, 50}, {16, 8, 3}, {16}},
         {{"dilations", Ints{2}}},
         {},
         -1,
         1,
         true},
        {"ConvLong",
         "Conv",
         {{1, 1, 2000}, {16, 1, 400}},
         {{"strides", Ints{160}}},
         {},
         -1,
         1,
         true},
        {"ConvDepthwise",
         "Conv",
         {{1, 24, 30}, {24, 1, 5}, {24}},
         {{"group", int64_t{24}}, {"pads", Ints{2, 2}}},
         {},
         -1,
         1,
         true},
        {"ConvGroups",
         "Conv",
         {{1, 12, 9, 9}, {8, 6, 3, 3}},
         {{"group", int64_t{2}}},
         {},
         -1,
         1,
         true},
        {"Conv3d",
         "Conv",
         {{1, 8, 6, 10, 10}, {16, 8, 3, 3, 3}, {16}},
         {{"pads", Ints(6, 1)}},
         {},
         -1,
         1,
         true},
        {"ConvVaryingWeights", "Conv", {{1, 4, 9, 9}, {8, 4, 3, 3}}, {}},
        {"WideConv3d",
         "Conv",
         {{1, 16, 3, 16, 16}, {22, 16, 7, 7, 7}, {22}},
         {{"pads", Ints(6, 3)}},
         {},
         -0.1F,
         0.1F,
         true,
         "Tanh"},
        {"ConvFewOutputs",
         "Conv",
         {{2, 64, 24, 20}, {1, 64, 7, 7}, {1}},
         {{"pads", Ints(4, 3)}},
         {},
         -0.2F,
         0.2F,
         true,
         "Sigmoid"},
        {"MatMul", "MatMul", {{2, 20, 16}, {2, 16, 24}}, {}},
        {"MatMulWeights", "MatMul", {{3, 20, 59}, {59, 33}}, {}, {}, -1, 1, true},
        {"MatMulBroadcast", "MatMul", {{2, 3, 5, 8}, {3, 8, 4}}, {}},
        {"MatMulThenGelu", "MatMul", {{1, 80, 64}, {64, 64}}, {}, {}, -1, 1, true, "Erf"},
        {"Gemm",
         "Gemm",
         {{4, 12}, {20, 12}, {20}},
         {{"transB", int64_t{1}}, {"alpha", 0.5F}, {"beta", 2.0F}},
         {},
         -1,
         1,
         true},
        {"GemmTransA", "Gemm", {{12, 4}, {12, 20}}, {{"transA", int64_t{1}}}},
        {"AveragePool",
         "AveragePool",
         {{2, 3, 8, 8}},
         {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}}},
        {"AveragePoolPads",
         "AveragePool",
         {{2, 3, 8, 8}},
         {{"kernel_shape", Ints{3, 3}}, {"pads", Ints{1, 1, 1, 1}}}},
        {"MaxPool",
         "MaxPool",
         {{2, 3, 9, 9}},
         {{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}}},
        {"ReduceSum", "ReduceSum", {{3, 10, 4}}, {{"keepdims", int64_t{0}}}, {{1}}},
        {"ReduceMeanLong", "ReduceMean", {{3, 5, 40, 30}}, {}, {{2, 3}}},
        {"ReduceMaxLong", "ReduceMax", {{3, 900}}, {{"keepdims", int64_t{0}}}, {{1}}},
        {"ReduceMinShort", "ReduceMin", {{3, 9}}, {}, {{-1}}},
        {"ReduceL2", "ReduceL2", {{3, 90}}, {}, {{-1}}},
        {"Softmax", "Softmax", {{3, 4, 80}}, {{"axis", int64_t{-1}}}, {}, -8, 8},
        {"SoftmaxInner", "Softmax", {{2, 22, 6, 7}}, {{"axis", int64_t{1}}}, {}, -8, 8},
        {"SoftmaxManyShort", "Softmax", {{8, 22, 64, 66}}, {{"axis", int64_t{1}}}, {}, -8, 8},
        {"SoftmaxLong", "Softmax", {{2, 20000}}, {{"axis", int64_t{-1}}}, {}, -8, 8},
        {"LayerNorm", "LayerNormalization", {{4, 10, 192}, {192}, {192}}, {}},
        {"InstanceNorm", "InstanceNormalization", {{2, 6, 20, 20}, {6}, {6}}, {}},
        {"InstanceNormWide", "InstanceNormalization", {{2, 24, 64, 66}, {24}, {24}}, {}},
        {"InstanceNormLong", "InstanceNormalization", {{1, 3, 8, 40, 40}, {3}, {3}}, {}},
        {"BatchNorm", "BatchNormalization", {{2, 5, 7}, {5}, {5}, {5}, {5}}, {}, {}, 0.5F, 2.0F},
        {"GlobalAveragePool", "GlobalAveragePool", {{2, 7, 12, 12}}, {}},
        {"Grid4dBorder", "GridSample", {{2, 6, 12, 10}, {2, 9, 8, 2}}, border, {}, -1.3F, 1.3F},
        {"Grid5dBorder", "GridSample", {{2, 3, 5, 6, 7}, {2, 4, 5, 6, 3}}, border, {}, -1.3F, 1.3F},
        {"Grid5dPlugin", "GridSample3D", {{1, 3, 5, 6, 7}, {1, 4, 5, 6, 3}}, {}, {}, -1.3F, 1.3F},
        {"GridLarge", "GridSample", {{1, 16, 40, 40}, {1, 64, 64, 2}}, {}, {}, -1.3F, 1.3F},
    };
    for (const auto* padding : {"zeros", "reflection"}) {
        for (const int64_t corners : {0, 1}) {
            const std::string name =
                std::string("Grid_") + padding + (corners == 1 ? "_corners" : "");
            const OnnxAttributes attributes{{"padding_mode", std::string(padding)},
                                            {"align_corners", corners}};
            cases.push_back({name + "_4d",
                             "GridSample",
                             {{2, 3, 9, 7}, {2, 8, 6, 2}},
                             attributes,
                             {},
                             -1.9F,
                             1.9F});
            cases.push_back({name + "_5d",
                             "GridSample",
                             {{1, 3, 4, 9, 7}, {1, 5, 8, 6, 3}},
                             attributes,
                             {},
                             -1.9F,
                             1.9F});
        }
    }
    for (const auto* mode : {"linear", "nearest"}) {
        for (const auto* transform :
             {"half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"}) {
            cases.push_back({std::string("Resize_") + mode + "_" + transform,
                             "Resize",
                             {{2, 3, 7, 6}},
                             {{"mode", std::string(mode)},
                              {"coordinate_transformation_mode", std::string(transform)},
                              {"nearest_mode", std::string("floor")}},
                             {{}, {}, {2, 3, 14, 18}}});
        }
    }
    return cases;
}

// Sizes that the tensor-core kernel takes: whole and broken chunks of channels, tiles of 16x16 and
// 32x16 positions, narrow and several groups of outputs, in two and three dimensions.
std::vector<OpCase> halo_cases() {
    const OnnxAttributes same{{"pads", Ints(4, 1)}};
    const OnnxAttributes same3{{"pads", Ints(6, 1)}};
    const auto make = [](const char* name, Shape x, Shape w, const OnnxAttributes& attributes,
                         const char* then, int64_t enlarge = 1) {
        const Shape bias{w[0]};
        const float high = 0.3F;
        return OpCase{
            name, "Conv", {std::move(x), std::move(w), bias}, attributes, {}, -high, high, true,
            then, enlarge};
    };
    return {
        make("Halo64To128", {2, 64, 32, 32}, {128, 64, 3, 3}, same, ""),
        make("Halo64To128Relu", {2, 64, 16, 48}, {128, 64, 3, 3}, same, "Relu"),
        make("HaloTwoGroups", {2, 64, 16, 16}, {256, 64, 3, 3}, same, "LeakyRelu"),
        make("HaloNarrow", {2, 80, 32, 64}, {64, 80, 3, 3}, same, ""),
        make("HaloVeryNarrow", {3, 128, 64, 64}, {12, 128, 3, 3}, same, "Sigmoid"),
        make("HaloOdd", {2, 142, 32, 32}, {142, 142, 3, 3}, same, "Relu"),
        make("Halo1x1", {2, 512, 32, 32}, {64, 512, 1, 1}, {}, ""),
        make("Halo5x5", {1, 72, 32, 32}, {40, 72, 5, 5}, {{"pads", Ints(4, 2)}}, ""),
        make("Halo3d", {1, 40, 6, 16, 16}, {48, 40, 3, 3, 3}, same3, "Relu"),
        make("Halo3dWide", {2, 72, 4, 16, 32}, {64, 72, 3, 3, 3}, same3, ""),
        make("HaloStep2", {1, 20, 3, 32, 64}, {22, 20, 7, 7, 7}, {{"pads", Ints(6, 3)}}, "Tanh"),
        make("HaloOfTwice", {2, 64, 16, 32}, {128, 64, 3, 3}, same, "Relu", 2),
        make("HaloOfFourTimes", {2, 96, 16, 16}, {256, 96, 3, 3}, same, "", 4),
        make("HaloOfThrice", {1, 64, 32, 32}, {40, 64, 5, 5}, {{"pads", Ints(4, 2)}}, "Relu", 3),
        make("Halo3dOfTwice", {2, 72, 4, 16, 32}, {64, 72, 3, 3, 3}, same3, "Relu", 2),
    };
}

const auto kName = [](const auto& given) { return given.param.name; };
INSTANTIATE_TEST_SUITE_P(Elementwise, CudaOps, testing::ValuesIn(elementwise_cases()), kName);
INSTANTIATE_TEST_SUITE_P(Halo, CudaOps, testing::ValuesIn(halo_cases()), kName);
INSTANTIATE_TEST_SUITE_P(Moving, CudaOps, testing::ValuesIn(moving_cases()), kName);
INSTANTIATE_TEST_SUITE_P(Network, CudaOps, testing::ValuesIn(network_cases()), kName);

}  // namespace
}  // namespace newscaster::device::cuda
