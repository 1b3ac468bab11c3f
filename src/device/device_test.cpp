#include "device/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <thread>

#include "core/error_test_util.h"
#include "device/onnx_builder_test_util.h"

namespace newscaster::device {
namespace {

using test::OnnxBuilder;
using test::TempFolder;
using ::testing::HasSubstr;

std::string error_of(ErrorCode code, const std::function<void()>& call) {
    return testing_support::error_of(call, code);
}

// A convolution with random weights: enough arithmetic that the order of sums matters.
OnnxBuilder convolution(int64_t batch = 1) {
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    std::vector<float> weights(16 * 8 * 3 * 3);
    for (auto& w : weights) w = normal(random);
    return OnnxBuilder()
        .input("picture", {batch, 8, 32, 32})
        .constant<float>("weights", {16, 8, 3, 3}, weights)
        .node("Conv", {"picture", "weights"}, {"features"},
              {{"pads", std::vector<int64_t>{1, 1, 1, 1}}})
        .output("features", {batch, 16, 32, 32});
}

void fill(Buffer& buffer, unsigned seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> uniform(-1.0F, 1.0F);
    for (auto& value : buffer.host_f32()) value = uniform(random);
}

class DeviceTest : public ::testing::Test {
  protected:
    std::unique_ptr<Device> open(int threads = 2) {
        DeviceOptions options;
        options.threads = threads;
        return open_device("cpu", options);
    }
    std::filesystem::path save(const OnnxBuilder& model, const std::string& name = "model.onnx") {
        return model.save(folder_.path() / name);
    }

    TempFolder folder_;
};

TEST(Precision, NamesRoundTrip) {
    for (const auto precision :
         {Precision::f32, Precision::f16, Precision::bf16, Precision::int8, Precision::fp8}) {
        EXPECT_EQ(precision_from_name(name_of(precision)), precision);
    }
    EXPECT_THAT(error_of(ErrorCode::bad_input, [] { (void)precision_from_name("fp32"); }),
                HasSubstr("'fp32'"));
}

TEST(OpenDevice, UnknownProviderNamesTheKnownOnes) {
    const auto text =
        error_of(ErrorCode::device_unavailable, [] { (void)open_device("quantum", {}); });
    for (const auto& name : provider_names()) EXPECT_THAT(text, HasSubstr(name));
}

TEST_F(DeviceTest, InfoIsFilled) {
    const auto device = open();
    const auto& info = device->info();
    EXPECT_EQ(info.provider, "cpu");
    EXPECT_FALSE(info.name.empty());
    EXPECT_THAT(info.runtime, HasSubstr("OpenVINO 20"));
    EXPECT_EQ(info.cores, 2);
    EXPECT_GT(info.memory_bytes, 0U);
    EXPECT_THAT(info.precisions, ::testing::Contains(Precision::f32));
}

TEST_F(DeviceTest, BuffersAreAlignedZeroedAndChecked) {
    const auto device = open();
    const auto stream = device->make_stream();
    for (const auto location : {Location::host, Location::pinned, Location::device}) {
        const auto buffer = device->allocate({"b", DType::f32, {3, 5}}, location);
        EXPECT_EQ(buffer->bytes(), 60U);
        EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->host_data()) % 64, 0U);
        EXPECT_TRUE(std::ranges::all_of(buffer->host_f32(), [](float v) { return v == 0.0F; }));
    }
    const auto small = device->allocate({"small", DType::f32, {2}}, Location::host);
    const auto large = device->allocate({"large", DType::f32, {3}}, Location::host);
    EXPECT_THAT(error_of(ErrorCode::runtime, [&] { device->copy(*small, *large, *stream); }),
                HasSubstr("8 and 12 bytes"));
    const auto bytes = device->allocate({"bytes", DType::u8, {3}}, Location::host);
    (void)error_of(ErrorCode::runtime, [&] { (void)bytes->host_f32(); });
}

TEST_F(DeviceTest, UploadConvertsToF32) {
    const auto device = open();
    const auto stream = device->make_stream();
    const std::vector<int32_t> values{1, -2, 3};
    const auto tensor = Tensor::of<int32_t>({3}, values);
    const auto buffer = upload(*device, *stream, "v", tensor);
    EXPECT_EQ(buffer->info().name, "v");
    EXPECT_THAT(buffer->host_f32(), ::testing::ElementsAre(1.0F, -2.0F, 3.0F));
    const auto copy = device->allocate(buffer->info(), Location::device);
    device->copy(*buffer, *copy, *stream);
    EXPECT_THAT(copy->host_f32(), ::testing::ElementsAre(1.0F, -2.0F, 3.0F));
}

TEST_F(DeviceTest, InspectTellsNamesTypesAndDynamicExtents) {
    const auto file = save(OnnxBuilder()
                               .input("a", {-1, 3})
                               .input("b", {1}, DType::i64)
                               .node("Relu", {"a"}, {"c"})
                               .node("Identity", {"b"}, {"d"})
                               .output("c", {-1, 3})
                               .output("d", {1}, DType::i64));
    const auto signature = open()->inspect(file);
    ASSERT_EQ(signature.inputs.size(), 2U);
    EXPECT_EQ(signature.inputs[0].name, "a");
    EXPECT_EQ(signature.inputs[0].shape, (Shape{-1, 3}));
    EXPECT_EQ(signature.inputs[1].dtype, DType::i64);
    ASSERT_EQ(signature.outputs.size(), 2U);
    EXPECT_EQ(signature.outputs[0].name, "c");
    EXPECT_EQ(signature.outputs[1].name, "d");
}

TEST_F(DeviceTest, BrokenGraphsAreBadPacks) {
    const auto device = open();
    EXPECT_THAT(error_of(ErrorCode::bad_pack, [&] { (void)device->inspect("/no/such.onnx"); }),
                HasSubstr("/no/such.onnx"));
    const auto noise = folder_.path() / "noise.onnx";
    write_text_atomic(noise, "this is not a graph");
    EXPECT_THAT(error_of(ErrorCode::bad_pack, [&] { (void)device->load(noise, "", {}); }),
                HasSubstr("noise.onnx"));
    const auto unknown_op =
        save(OnnxBuilder().input("a", {2}).node("NoSuchOperator", {"a"}, {"b"}).output("b", {2}));
    EXPECT_THAT(error_of(ErrorCode::bad_pack, [&] { (void)device->load(unknown_op, "", {}); }),
                HasSubstr("NoSuchOperator"));
}

TEST_F(DeviceTest, OtherOpsetsLoadOrAreBadPacks) {
    const auto device = open();
    for (const int64_t opset : {-1, 0, 1, 6, 7, 13, 20, 22, 99, 1 << 30}) {
        const auto file =
            save(OnnxBuilder(opset).input("a", {2}).node("Relu", {"a"}, {"b"}).output("b", {2}));
        if (opset >= 13 && opset <= 22) {
            EXPECT_NE(device->load(file, "", {}), nullptr) << opset;
            continue;
        }
        try {
            (void)device->load(file, "", {});
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::bad_pack) << opset;
        }
    }
}

TEST_F(DeviceTest, AbsurdTensorsAreRefusedBeforeTheyAreMade) {
    const auto device = open();
    for (const int64_t extent : {int64_t{1} << 30, int64_t{1} << 40, int64_t{1} << 62}) {
        const auto inner = OnnxBuilder()
                               .input("x", {1, 4})
                               .constant<int64_t>("shape", {1}, {extent})
                               .node("ConstantOfShape", {"shape"}, {"large"})
                               .node("ReduceSum", {"large"}, {"sum"})
                               .node("Add", {"x", "sum"}, {"y"})
                               .output("y", {1, 4});
        const auto outer = OnnxBuilder()
                               .input("x", {1, 4})
                               .constant<int64_t>("shape", {2}, {extent, 4})
                               .node("Expand", {"x", "shape"}, {"y"})
                               .output("y", {extent, 4});
        const auto short_data = OnnxBuilder()
                                    .input("x", {1, 4})
                                    .constant<float>("w", {extent}, {1.0F, 2.0F})
                                    .node("ReduceSum", {"w"}, {"sum"})
                                    .node("Add", {"x", "sum"}, {"y"})
                                    .output("y", {1, 4});
        for (const auto& graph : {inner, outer, short_data}) {
            const auto file = save(graph);
            (void)error_of(ErrorCode::bad_pack, [&] { (void)device->load(file, "", {}); });
        }
    }
}

TEST_F(DeviceTest, InputShapesFixDynamicExtents) {
    const auto device = open();
    const auto file =
        save(OnnxBuilder().input("a", {-1, 3}).node("Relu", {"a"}, {"b"}).output("b", {-1, 3}));
    EXPECT_THAT(error_of(ErrorCode::bad_pack, [&] { (void)device->load(file, "", {}); }),
                HasSubstr("[-1,3]"));
    GraphOptions options;
    options.input_shapes["a"] = {4, 3};
    const auto graph = device->load(file, "", options);
    EXPECT_EQ(graph->inputs().at(0).shape, (Shape{4, 3}));
    EXPECT_EQ(graph->outputs().at(0).shape, (Shape{4, 3}));
    options.input_shapes = {{"nobody", {4, 3}}};
    (void)error_of(ErrorCode::bad_pack, [&] { (void)device->load(file, "", options); });
    options.input_shapes = {{"a", {4, 5}}};
    (void)error_of(ErrorCode::bad_pack, [&] { (void)device->load(file, "", options); });
}

TEST_F(DeviceTest, RunsAndReportsUnboundOrMisfitTensors) {
    const auto device = open();
    const auto stream = device->make_stream();
    const auto file =
        save(OnnxBuilder().input("a", {1, 3}).node("Relu", {"a"}, {"b"}).output("b", {1, 3}));
    const auto graph = device->load(file, "", {});
    auto session = graph->make_session();
    EXPECT_THAT(error_of(ErrorCode::runtime, [&] { session->run(*stream); }), HasSubstr("'a'"));
    (void)error_of(ErrorCode::runtime, [&] { (void)session->buffer("a"); });
    EXPECT_THAT(error_of(ErrorCode::bad_pack, [&] { (void)session->buffer("z"); }),
                HasSubstr("wanted one of: a b"));
    const auto flat = device->allocate({"a", DType::f32, {3}}, Location::device);
    EXPECT_THAT(error_of(ErrorCode::bad_pack, [&] { session->bind("a", flat); }),
                HasSubstr("found f32[3], wanted f32[1,3]"));
    (void)error_of(ErrorCode::runtime, [&] { session->bind("a", nullptr); });

    const auto input = device->allocate({"a", DType::f32, {1, 3}}, Location::device);
    session->bind("a", input);
    EXPECT_EQ(session->buffer("a"), input);
    const auto output = session->buffer("b");
    std::ranges::copy(std::vector<float>{-1.0F, 0.5F, 2.0F}, input->host_f32().begin());
    session->run(*stream);
    EXPECT_THAT(output->host_f32(), ::testing::ElementsAre(0.0F, 0.5F, 2.0F));
}

// The output buffer of one graph is the next one's input: the second sees what the first wrote,
// through the same memory, and rebinding moves the result.
TEST_F(DeviceTest, ChainsGraphsThroughOneBuffer) {
    const auto device = open();
    const auto stream = device->make_stream();
    const auto first = device->load(
        save(OnnxBuilder().input("a", {1, 4}).node("Neg", {"a"}, {"b"}).output("b", {1, 4}),
             "first.onnx"),
        "", {});
    const auto second = device->load(
        save(OnnxBuilder().input("b", {1, 4}).node("Exp", {"b"}, {"c"}).output("c", {1, 4}),
             "second.onnx"),
        "", {});
    auto one = first->make_session();
    auto two = second->make_session();
    const auto input = device->allocate({"a", DType::f32, {1, 4}}, Location::device);
    one->bind("a", input);
    two->bind("b", one->buffer("b"));
    const auto result = device->allocate({"c", DType::f32, {1, 4}}, Location::device);
    two->bind("c", result);
    for (const float value : {0.0F, 1.0F, -2.0F}) {
        std::ranges::fill(input->host_f32(), value);
        one->run(*stream);
        two->run(*stream);
        for (const float y : result->host_f32()) EXPECT_NEAR(y, std::exp(-value), 1e-5F);
    }
}

TEST_F(DeviceTest, SessionOutlivesItsGraph) {
    const auto device = open();
    const auto stream = device->make_stream();
    auto graph = device->load(save(convolution()), "", {});
    auto session = graph->make_session();
    const auto input = device->allocate(graph->inputs().at(0), Location::device);
    graph.reset();
    session->bind("picture", input);
    session->run(*stream);
    EXPECT_EQ(session->buffer("features")->info().shape, (Shape{1, 16, 32, 32}));
}

// Same bits from run to run, from session to session, and with sessions running at the same time.
TEST_F(DeviceTest, F32IsDeterministicAndSessionsRunConcurrently) {
    const auto device = open();
    GraphOptions options;
    options.concurrency = 2;
    const auto graph = device->load(save(convolution()), "", options);
    const auto input = device->allocate(graph->inputs().at(0), Location::device);
    fill(*input, 3);
    const auto reference_session = graph->make_session();
    reference_session->bind("picture", input);
    const auto main_stream = device->make_stream();
    reference_session->run(*main_stream);
    const auto reference = reference_session->buffer("features");
    std::array<int, 2> mismatches{};
    {
        std::vector<std::jthread> threads;
        threads.reserve(mismatches.size());
        for (int& mismatch : mismatches) {
            threads.emplace_back([&] {
                const auto stream = device->make_stream();
                const auto session = graph->make_session();
                session->bind("picture", input);
                const auto output = session->buffer("features");
                for (int i = 0; i < 50; ++i) {
                    session->run(*stream);
                    mismatch += std::memcmp(output->host_data(), reference->host_data(),
                                            output->bytes()) != 0;
                }
            });
        }
    }
    EXPECT_THAT(mismatches, ::testing::Each(0));
}

TEST_F(DeviceTest, EveryOfferedPrecisionRunsAndOthersAreUnavailable) {
    const auto device = open();
    const auto stream = device->make_stream();
    const auto file = save(convolution());
    std::vector<float> reference;
    auto offered = device->info().precisions;
    std::ranges::reverse(offered);  // f32 first
    for (const auto precision : offered) {
        GraphOptions options;
        options.precision = precision;
        const auto session = device->load(file, "", options)->make_session();
        const auto input =
            device->allocate({"picture", DType::f32, {1, 8, 32, 32}}, Location::device);
        fill(*input, 11);
        session->bind("picture", input);
        session->run(*stream);
        const auto output = session->buffer("features");
        const auto values = output->host_f32();
        if (reference.empty()) reference.assign(values.begin(), values.end());
        for (size_t i = 0; i < values.size(); ++i) ASSERT_NEAR(values[i], reference[i], 0.2F);
    }
    GraphOptions options;
    options.precision = Precision::fp8;
    EXPECT_THAT(
        error_of(ErrorCode::device_unavailable, [&] { (void)device->load(file, "", options); }),
        HasSubstr("fp8"));
}

}  // namespace
}  // namespace newscaster::device
