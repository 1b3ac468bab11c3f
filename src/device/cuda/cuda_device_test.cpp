#include "device/cuda/cuda_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "device/cuda/cuda_test_util.h"
#include "device/onnx_builder_test_util.h"
#include "newscaster/error.h"

namespace newscaster::device::cuda {
namespace {

using newscaster::test::OnnxBuilder;
using newscaster::test::TempFolder;
using testing::Each;
using testing::Eq;
using testing::HasSubstr;

std::filesystem::path doubling_graph(const TempFolder& folder) {
    return OnnxBuilder(16)
        .input("x", {-1, 64})
        .node("Add", {"x", "x"}, {"y"})
        .output("y", {-1, 64})
        .save(folder.path() / "double.onnx");
}

TEST(CudaDevice, WithoutAGpuTheErrorSaysSo) {
    DeviceOptions options;
    options.ordinal = 99;
    EXPECT_THROW(static_cast<void>(open_cuda_device(options)), Error);
}

TEST(CudaDevice, CopiesBetweenAllLocations) {
    NEWSCASTER_NEEDS_GPU();
    const auto device = open_cuda_device({});
    const auto stream = device->make_stream();
    const TensorInfo info{"t", DType::f32, {1000}};
    auto first = device->allocate(info, Location::host);
    EXPECT_THAT(first->host_f32(), Each(Eq(0.0F)));
    for (size_t i = 0; i < 1000; ++i) first->host_f32()[i] = static_cast<float>(i);
    const auto middle = device->allocate(info, Location::device);
    EXPECT_EQ(middle->host_data(), nullptr);
    const auto last = device->allocate(info, Location::pinned);
    device->copy(*first, *middle, *stream);
    device->copy(*middle, *last, *stream);
    stream->synchronize();
    for (size_t i = 0; i < 1000; ++i) ASSERT_EQ(last->host_f32()[i], static_cast<float>(i));
    const auto small = device->allocate({"s", DType::f32, {3}}, Location::device);
    EXPECT_THROW(device->copy(*first, *small, *stream), Error);
}

TEST(CudaSession, ReplaysWithNewDataInTheSameBuffers) {
    NEWSCASTER_NEEDS_GPU();
    const TempFolder folder;
    const auto device = open_cuda_device({});
    const auto stream = device->make_stream();
    const auto graph = device->load(
        doubling_graph(folder), "",
        {.precision = Precision::f32, .concurrency = 1, .input_shapes = {{"x", {2, 64}}}});
    const auto session = graph->make_session();
    EXPECT_THROW(session->run(*stream), Error);
    const auto x = device->allocate({"x", DType::f32, {2, 64}}, Location::pinned);
    const auto y = device->allocate({"y", DType::f32, {2, 64}}, Location::pinned);
    session->bind("x", x);
    session->bind("y", y);
    for (int turn = 1; turn < 4; ++turn) {
        std::ranges::fill(x->host_f32(), static_cast<float>(turn));
        session->run(*stream);
        stream->synchronize();
        EXPECT_THAT(y->host_f32(), Each(Eq(2.0F * static_cast<float>(turn))));
    }
}

TEST(CudaSession, RefusesWrongBuffers) {
    NEWSCASTER_NEEDS_GPU();
    const TempFolder folder;
    const auto device = open_cuda_device({});
    const auto graph = device->load(
        doubling_graph(folder), "",
        {.precision = Precision::f32, .concurrency = 1, .input_shapes = {{"x", {2, 64}}}});
    const auto session = graph->make_session();
    EXPECT_THROW(session->bind("x", nullptr), Error);
    EXPECT_THROW(session->bind("z", device->allocate({"z", DType::f32, {2, 64}}, Location::device)),
                 Error);
    EXPECT_THROW(session->bind("x", device->allocate({"x", DType::f32, {2, 63}}, Location::device)),
                 Error);
    EXPECT_THROW(session->bind("x", device->allocate({"x", DType::i32, {2, 64}}, Location::device)),
                 Error);
}

TEST(CudaGraph, RefusesPrecisionsItLacks) {
    NEWSCASTER_NEEDS_GPU();
    const TempFolder folder;
    const auto device = open_cuda_device({});
    try {
        static_cast<void>(device->load(
            doubling_graph(folder), "",
            {.precision = Precision::int8, .concurrency = 1, .input_shapes = {{"x", {2, 64}}}}));
        FAIL() << "accepted";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::device_unavailable);
        EXPECT_THAT(error.what(), HasSubstr("int8"));
    }
}

TEST(CudaGraph, ACachedGraphGivesTheSameAndADamagedCacheIsRebuilt) {
    NEWSCASTER_NEEDS_GPU();
    const TempFolder folder;
    const auto file = doubling_graph(folder);
    std::mt19937 random(5);
    std::map<std::string, Tensor> inputs;
    inputs.emplace("x", test::random_tensor({2, 64}, random));
    std::vector<float> first;
    DeviceOptions device_options;
    device_options.cache_dir = folder.path() / "cache";
    for (int turn = 0; turn < 3; ++turn) {
        const auto device = open_cuda_device(device_options);
        const auto graph = device->load(
            file, "",
            {.precision = Precision::f16, .concurrency = 1, .input_shapes = {{"x", {2, 64}}}});
        const auto outputs = test::run_graph(*device, *graph, inputs);
        const auto found = outputs.at("y").as<float>();
        if (turn == 0) first.assign(found.begin(), found.end());
        EXPECT_TRUE(std::ranges::equal(found, first));
        size_t entries = 0;
        for (const auto& entry : std::filesystem::directory_iterator(folder.path() / "cache")) {
            if (entry.path().extension() != ".graph") continue;
            ++entries;
            std::filesystem::resize_file(entry.path(),
                                         std::filesystem::file_size(entry.path()) / 2);
        }
        EXPECT_EQ(entries, 1U);
    }
}

TEST(CudaSession, SessionsOfOneGraphRunOnTheirOwnThreads) {
    NEWSCASTER_NEEDS_GPU();
    const TempFolder folder;
    const auto device = open_cuda_device({});
    const auto graph = device->load(
        doubling_graph(folder), "",
        {.precision = Precision::f32, .concurrency = 4, .input_shapes = {{"x", {2, 64}}}});
    std::vector<int> wrong(4, 0);
    {
        std::vector<std::jthread> threads;
        for (size_t t = 0; t < wrong.size(); ++t) {
            threads.emplace_back([&, t] {
                const auto stream = device->make_stream();
                const auto session = graph->make_session();
                const auto x = device->allocate({"x", DType::f32, {2, 64}}, Location::pinned);
                const auto y = device->allocate({"y", DType::f32, {2, 64}}, Location::pinned);
                session->bind("x", x);
                session->bind("y", y);
                for (int turn = 0; turn < 50; ++turn) {
                    const auto value = static_cast<float>(100 * t + turn);
                    std::ranges::fill(x->host_f32(), value);
                    session->run(*stream);
                    stream->synchronize();
                    for (const float found : y->host_f32())
                        wrong[t] += found == 2.0F * value ? 0 : 1;
                }
            });
        }
    }
    EXPECT_THAT(wrong, Each(Eq(0)));
}

}  // namespace
}  // namespace newscaster::device::cuda
