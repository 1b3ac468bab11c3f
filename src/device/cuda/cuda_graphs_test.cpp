// The default pack's graphs against outputs that another runtime computed on a CPU
// (scripts/cuda-cases.py; NEWSCASTER_CUDA_CASES names the folder).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "core/safetensors.h"
#include "device/cuda/cuda_test_util.h"

namespace newscaster::device::cuda {
namespace {

namespace fs = std::filesystem;

struct Case {
    test::Values inputs;
    test::Values outputs;
};

Case read_case(const fs::path& file) {
    Case result;
    for (auto& [name, tensor] : read_safetensors(file)) {
        auto& target = name.starts_with("in:") ? result.inputs : result.outputs;
        target.emplace(name.substr(name.find(':') + 1), std::move(tensor));
    }
    return result;
}

fs::path cases_folder() {
    const char* folder = std::getenv("NEWSCASTER_CUDA_CASES");
    return folder == nullptr ? fs::path() : fs::path(folder);
}

// [1, ...] -> [batch, ...] by repetition.
Tensor repeated(const Tensor& tensor, int64_t batch) {
    Shape shape = tensor.shape();
    shape[0] = batch;
    Tensor result(tensor.dtype(), shape);
    for (int64_t i = 0; i < batch; ++i) {
        std::memcpy(result.data() + static_cast<size_t>(i) * tensor.bytes(), tensor.data(),
                    tensor.bytes());
    }
    return result;
}

class CudaGraphs : public testing::TestWithParam<std::string> {
  protected:
    void SetUp() override {
        NEWSCASTER_NEEDS_GPU();
        if (cases_folder().empty()) GTEST_SKIP() << "NEWSCASTER_CUDA_CASES is not set";
        device_ = open_cuda_device({});
        given_ = read_case(cases_folder() / (GetParam() + ".safetensors"));
    }

    test::Values run(Precision precision, int64_t batch) {
        GraphOptions options{.precision = precision, .concurrency = 1, .input_shapes = {}};
        test::Values inputs;
        for (const auto& [name, tensor] : given_.inputs) {
            inputs.emplace(name, repeated(tensor, tensor.shape().size() > 1 ? batch : 1));
            options.input_shapes[name] = inputs.at(name).shape();
        }
        const auto file = fs::path(NEWSCASTER_SOURCE_DIR) / "packs/studio" / (GetParam() + ".onnx");
        const auto graph = device_->load(file, "", options);
        return test::run_graph(*device_, *graph, inputs);
    }

    static test::Difference compare(const Tensor& found, const Tensor& wanted) {
        const auto values = wanted.as<float>();
        return test::difference(found.as<float>(),
                                std::vector<double>(values.begin(), values.end()));
    }

    std::unique_ptr<Device> device_;
    Case given_;
};

TEST_P(CudaGraphs, F32AgreesWithTheCpu) {
    const auto found = run(Precision::f32, 1);
    for (const auto& [name, wanted] : given_.outputs) {
        const auto d = compare(found.at(name), wanted);
        RecordProperty(name, fmt::format("largest {:.3g} relative {:.3g}", d.largest, d.relative));
        fmt::print("{} f32 {}: largest {:.3g}, relative {:.3g}\n", GetParam(), name, d.largest,
                   d.relative);
        EXPECT_LE(d.largest, 1e-3) << name;
    }
}

TEST_P(CudaGraphs, F16StaysClose) {
    const auto found = run(Precision::f16, 1);
    for (const auto& [name, wanted] : given_.outputs) {
        const auto d = compare(found.at(name), wanted);
        fmt::print("{} f16 {}: largest {:.3g}, relative {:.3g}, psnr {:.1f} dB\n", GetParam(), name,
                   d.largest, d.relative, d.psnr_db);
        EXPECT_LE(d.relative, 1e-2) << name;
        if (GetParam() == "decoder") {
            EXPECT_GE(d.psnr_db, 50.0) << name;
        }
    }
}

TEST_P(CudaGraphs, EveryEntryOfABatchIsTheSame) {
    if (GetParam() == "audio_encoder" || GetParam() == "motion_generator")
        GTEST_SKIP() << "batch is always 1";
    const auto found = run(Precision::f16, 3);
    const auto single = run(Precision::f16, 1);
    for (const auto& [name, tensor] : single) {
        for (int64_t i = 0; i < 3; ++i) {
            const auto entry = found.at(name).row(i);
            const auto values = tensor.as<float>();
            const auto d =
                test::difference(entry, std::vector<double>(values.begin(), values.end()));
            EXPECT_LE(d.relative, 2e-3) << name << " of entry " << i;
        }
    }
}

TEST_P(CudaGraphs, ASecondLoadStaysClose) {
    const auto first = run(Precision::f16, 1);
    const auto second = run(Precision::f16, 1);
    for (const auto& [name, tensor] : first) {
        const auto d = compare(second.at(name), tensor);
        EXPECT_LE(d.relative, 2e-3) << name;  // each load may choose other library kernels
    }
}

INSTANTIATE_TEST_SUITE_P(Pack, CudaGraphs,
                         testing::Values("warp", "decoder", "audio_encoder", "motion_generator"),
                         [](const auto& given) { return given.param; });

}  // namespace
}  // namespace newscaster::device::cuda
