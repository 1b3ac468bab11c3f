// Every network of Ditto v0.4, at width 0.125, through the cpu provider against the goldens of
// docs/parity.md.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <random>

#include "core/file.h"
#include "core/json_reader.h"
#include "core/safetensors.h"
#include "device/device.h"
#include "pack/pack.h"
#include "seeded_weights.h"

namespace newscaster {
namespace {

namespace fs = std::filesystem;

constexpr double kTolerance = 1e-4;

fs::path goldens() {
    return fs::path(NEWSCASTER_SOURCE_DIR) / "tests/golden/ditto";
}

TEST(SeededWeights, PhiloxIsNumPys) {
    // numpy.random.Philox(key=[1, 2]).random_raw(5)
    const std::vector<uint32_t> wanted{0xb5536b09, 0x4f2f4313, 0x219ff32a, 0x5b617be3, 0x6f9275cb,
                                       0x09729347, 0x962c3942, 0xf63f3bf4, 0x73aa0f43, 0x04dcc604};
    EXPECT_EQ(test::philox_words(1, 2, wanted.size()), wanted);
}

TEST(SeededWeights, UniformIsTheExporters) {
    // ditto.seeded.uniform(42, "fc.weight", (11,)), the first and the last three
    const auto values = test::seeded_uniform(42, "fc.weight", 11);
    EXPECT_EQ(values[0], -0x1.370ea4p-1F);
    EXPECT_EQ(values[1], -0x1.876p-12F);
    EXPECT_EQ(values[8], 0x1.917b38p-1F);
    EXPECT_EQ(values[9], -0x1.dca48cp-1F);
    EXPECT_EQ(values[10], -0x1.aa43p-4F);
}

TEST(FormulaInput, IsTheGoldensFormula) {
    // golden_ditto.formula_input("kp_source", (5,)) with its range -0.4 to 0.4
    const std::vector<float> wanted{-0x1.40576cp-3F, 0x1.5a1f6ap-2F, 0x1.09ba9ap-5F,
                                    -0x1.17b0c0p-2F, 0x1.c534c0p-3F};
    EXPECT_EQ(test::formula_input("kp_source", 5, -0.4, 0.4), wanted);
}

class GoldenDitto : public ::testing::TestWithParam<std::string> {
  protected:
    GoldenDitto()
        : document_(JsonReader::parse(read_text(goldens() / "goldens.json"), "goldens.json",
                                      ErrorCode::bad_input)),
          entry_(JsonReader(document_, "goldens.json", ErrorCode::bad_input)
                     .at("roles")
                     .at(GetParam())) {}

    void bind_inputs(device::Session& session, const device::Graph& graph) {
        for (const auto& info : graph.inputs()) {
            const JsonReader input = entry_.at("inputs").at(info.name);
            const auto buffer = device_->allocate(info, device::Location::device);
            if (info.dtype == DType::i64) {
                const int64_t value = input.at("value").integer(0, 1000);
                std::memcpy(buffer->host_data(), &value, sizeof(value));
            } else {
                const JsonReader range = input.at("range");
                const auto values =
                    test::formula_input(info.name, static_cast<size_t>(element_count(info.shape)),
                                        range.at(0).number(-1, 1), range.at(1).number(-1, 1));
                std::ranges::copy(values, buffer->host_f32().begin());
            }
            session.bind(info.name, buffer);
        }
    }

    // A pack's motion extractor has two outputs more than the network: those of the goldens count.
    void compare_outputs(device::Session& session, const TensorMap& wanted) {
        const JsonReader outputs = entry_.at("outputs");
        for (const auto& name : outputs.keys()) {
            const auto stride =
                static_cast<size_t>(outputs.at(name).at("stride").integer(1, 1 << 30));
            const auto buffer = session.buffer(name);
            ASSERT_EQ(buffer->info().shape, outputs.at(name).at("shape").shape()) << name;
            const auto found = buffer->host_f32();
            const auto golden = wanted.at(outputs.at(name).at("tensor").text()).as<float>();
            ASSERT_EQ((found.size() + stride - 1) / stride, golden.size()) << name;
            double worst = 0.0;
            for (size_t i = 0; i < golden.size(); ++i) {
                worst = std::max(worst, std::abs(double{found[i * stride]} - golden[i]));
            }
            RecordProperty("max_abs_error_" + name, fmt::format("{:.1e}", worst));
            EXPECT_LE(worst, kTolerance) << name;
        }
    }

    std::unique_ptr<device::Device> device_ = device::open_device("cpu", {});
    nlohmann::json document_;
    JsonReader entry_;
};

TEST_P(GoldenDitto, NetworkEqualsTheGoldens) {
    std::map<std::string, Shape> shapes;
    for (const auto& name : entry_.at("inputs").keys()) {
        shapes[name] = entry_.at("inputs").at(name).at("shape").shape();
    }
    const auto graph = device_->load(fs::path(NEWSCASTER_DITTO_PACK) / (GetParam() + ".onnx"), "",
                                     {.precision = device::Precision::f32, .input_shapes = shapes});
    const auto session = graph->make_session();
    const auto stream = device_->make_stream();
    bind_inputs(*session, *graph);
    session->run(*stream);
    stream->synchronize();
    compare_outputs(*session, read_safetensors(goldens() / "goldens.safetensors"));
}

INSTANTIATE_TEST_SUITE_P(Roles, GoldenDitto,
                         ::testing::Values("audio_encoder", "motion_generator", "stitch",
                                           "appearance_extractor", "motion_extractor", "warp",
                                           "dense_motion_core", "decoder"),
                         [](const auto& role) { return role.param; });

// A damaged graph whose hash the manifest happens to have: loaded, or refused with an error.
class DamagedDitto : public ::testing::TestWithParam<std::string> {
  protected:
    DamagedDitto() {
        const fs::path folder = NEWSCASTER_DITTO_PACK;
        bytes_ = read_file(folder / (GetParam() + ".onnx"));
        file_ = folder / ("damaged_" + GetParam() + ".onnx");
        for (const auto& input : device_->inspect(folder / (GetParam() + ".onnx")).inputs) {
            Shape shape = input.shape;
            std::ranges::replace(shape, -1, 1);
            options_.input_shapes[input.name] = shape;
        }
    }
    ~DamagedDitto() override { fs::remove(file_); }

    // Whether the bytes still are a usable graph.
    bool loads(std::span<const std::byte> bytes) {
        write_file_atomic(file_, bytes);
        try {
            return device_->load(file_, "", options_) != nullptr;
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::bad_pack);
            EXPECT_NE(std::string(error.what()).find(file_.string()), std::string::npos);
            return false;
        }
    }

    std::unique_ptr<device::Device> device_ = device::open_device("cpu", {});
    device::GraphOptions options_;
    std::vector<std::byte> bytes_;
    fs::path file_;
};

TEST_P(DamagedDitto, IsLoadedOrRefused) {
    constexpr size_t kCuts = 12;
    constexpr int kFlips = 40;
    EXPECT_TRUE(loads(bytes_));
    for (size_t cut = 0; cut < kCuts; ++cut) {
        EXPECT_FALSE(loads(std::span(bytes_).first(bytes_.size() * cut / kCuts))) << cut;
    }
    std::mt19937 random(11);
    int refused = 0;
    for (int i = 0; i < kFlips; ++i) {
        auto damaged = bytes_;
        for (int flip = 0; flip < 3; ++flip) {
            damaged[random() % damaged.size()] ^= std::byte{1} << random() % 8U;
        }
        refused += loads(damaged) ? 0 : 1;
    }
    EXPECT_GT(refused, 0);
}

INSTANTIATE_TEST_SUITE_P(Roles, DamagedDitto,
                         ::testing::Values("stitch", "appearance_extractor", "dense_motion_core",
                                           "motion_extractor"),
                         [](const auto& role) { return role.param; });

TEST(DittoPack, IsAValidPack) {
    const auto pack = pack::Pack::open(NEWSCASTER_DITTO_PACK);
    const auto device = device::open_device("cpu", {});
    for (const auto role : {pack::role::kAudioEncoder, pack::role::kMotionGenerator,
                            pack::role::kStitch, pack::role::kWarp, pack::role::kDecoder}) {
        EXPECT_NE(pack.load_graph(*device, role, device::Precision::f32, 1), nullptr) << role;
    }
}

}  // namespace
}  // namespace newscaster
