// The 5-D grid sample through OpenVINO, against a plain double-precision reference.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <random>
#include <tuple>

#include "device/device.h"
#include "device/onnx_builder_test_util.h"
#include "newscaster/error.h"

namespace newscaster::device {
namespace {

using test::OnnxAttributes;
using test::OnnxBuilder;
using test::TempFolder;

struct Case {
    std::string mode;
    std::string padding;
    bool align = false;
};

// Voxel coordinate after padding; the definition, step by step.
double coordinate(const Case& rule, double g, double size) {
    double x = rule.align ? (g + 1.0) / 2.0 * (size - 1.0) : ((g + 1.0) * size - 1.0) / 2.0;
    if (rule.padding == "reflection") {
        const double low = rule.align ? 0.0 : -0.5;
        const double high = rule.align ? size - 1.0 : size - 0.5;
        if (high <= low) return 0.0;
        while (x < low || x > high) x = x < low ? 2.0 * low - x : 2.0 * high - x;
    }
    return rule.padding == "zeros" ? x : std::clamp(x, 0.0, size - 1.0);
}

// Element of [C, D, H, W] or 0 outside.
double voxel(std::span<const float> data, const Shape& shape, int64_t c, double z, double y,
             double x) {
    const auto inside = [](double v, int64_t n) { return v >= 0.0 && v < static_cast<double>(n); };
    if (!inside(z, shape[2]) || !inside(y, shape[3]) || !inside(x, shape[4])) return 0.0;
    const auto at =
        ((c * shape[2] + static_cast<int64_t>(z)) * shape[3] + static_cast<int64_t>(y)) * shape[4] +
        static_cast<int64_t>(x);
    return data[static_cast<size_t>(at)];
}

// nullopt where a float implementation may rightly choose another voxel (a near tie).
std::optional<double> reference(const Case& rule, std::span<const float> data, const Shape& shape,
                                int64_t c, const float* g) {
    std::array<double, 3> at{};  // x, y, z
    for (size_t axis = 0; axis < 3; ++axis) {
        at[axis] = coordinate(rule, g[axis], static_cast<double>(shape[4 - axis]));
    }
    if (rule.mode == "nearest") {
        for (auto& v : at) {
            const double tie = std::abs(v - std::floor(v) - 0.5);
            if (tie > 0.0 && tie < 1e-5) return std::nullopt;
            v = std::nearbyint(v);
        }
        return voxel(data, shape, c, at[2], at[1], at[0]);
    }
    double sum = 0.0;
    for (int corner = 0; corner < 8; ++corner) {
        double weight = 1.0;
        std::array<double, 3> position{};
        for (int axis = 0; axis < 3; ++axis) {
            const double low = std::floor(at[axis]);
            const bool upper = (corner >> axis & 1) != 0;
            position[axis] = low + (upper ? 1.0 : 0.0);
            weight *= upper ? at[axis] - low : 1.0 - (at[axis] - low);
        }
        sum += weight * voxel(data, shape, c, position[2], position[1], position[0]);
    }
    return sum;
}

OnnxBuilder model(const std::string& op, const OnnxAttributes& attributes, const Shape& volume,
                  const Shape& grid, int64_t opset) {
    Shape target = volume;
    std::copy(grid.begin() + 1, grid.end() - 1, target.begin() + 2);
    return OnnxBuilder(opset)
        .input("volume", volume)
        .input("grid", grid)
        .node(op, {"volume", "grid"}, {"sampled"}, attributes)
        .output("sampled", target);
}

// Random values with the cases that hurt: far outside, exactly on borders, centres and halves.
std::vector<float> hard_grid(size_t count, unsigned seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> near(-1.3F, 1.3F);
    std::uniform_real_distribution<float> far(-50.0F, 50.0F);
    const std::array<float, 12> special{-1.0F, 1.0F,  0.0F,    -0.5F,  0.5F,    0.75F,
                                        -3.0F, 2.25F, -1.125F, 1.125F, 1000.0F, -1000.0F};
    std::vector<float> grid(count);
    for (auto& g : grid) {
        switch (random() % 4) {
            case 0:
                g = special[random() % special.size()];
                break;
            case 1:
                g = far(random);
                break;
            default:
                g = near(random);
        }
    }
    return grid;
}

class GridSampleTest : public ::testing::Test {
  protected:
    GridSampleTest() {
        DeviceOptions options;
        options.threads = 2;
        device_ = open_device("cpu", options);
        stream_ = device_->make_stream();
    }

    std::vector<float> sample(const OnnxBuilder& builder, std::span<const float> volume,
                              std::span<const float> grid, Precision precision = Precision::f32) {
        GraphOptions options;
        options.precision = precision;
        const auto graph = device_->load(builder.save(folder_.path() / "model.onnx"), "", options);
        const auto session = graph->make_session();
        for (const auto& info : graph->inputs()) {
            const auto buffer = device_->allocate(info, Location::device);
            std::ranges::copy(info.name == "grid" ? grid : volume, buffer->host_f32().begin());
            session->bind(info.name, buffer);
        }
        session->run(*stream_);
        const auto values = session->buffer("sampled")->host_f32();
        return {values.begin(), values.end()};
    }

    std::vector<float> random_volume(const Shape& shape) {
        std::mt19937 random(5);
        std::normal_distribution<float> normal;
        std::vector<float> values(static_cast<size_t>(element_count(shape)));
        for (auto& v : values) v = normal(random);
        return values;
    }

    void expect_reference(const Case& rule, const Shape& volume_shape, const Shape& grid_shape,
                          std::span<const float> volume, std::span<const float> grid,
                          std::span<const float> sampled) {
        const int64_t channels = volume_shape[1];
        const int64_t points = element_count(grid_shape) / 3 / grid_shape[0];
        const auto per_item = static_cast<size_t>(element_count(volume_shape) / volume_shape[0]);
        int64_t compared = 0;
        for (int64_t n = 0; n < volume_shape[0]; ++n) {
            const auto item = volume.subspan(static_cast<size_t>(n) * per_item, per_item);
            for (int64_t c = 0; c < channels; ++c) {
                for (int64_t p = 0; p < points; ++p) {
                    const float* g = grid.data() + 3 * (n * points + p);
                    const auto wanted = reference(rule, item, volume_shape, c, g);
                    if (!wanted) continue;
                    ++compared;
                    const auto at = static_cast<size_t>((n * channels + c) * points + p);
                    ASSERT_NEAR(sampled[at], *wanted, 2e-5)
                        << rule.mode << ' ' << rule.padding << " align " << rule.align << " n " << n
                        << " c " << c << " grid " << g[0] << ' ' << g[1] << ' ' << g[2];
                }
            }
        }
        EXPECT_GT(compared, points * channels * volume_shape[0] * 9 / 10);
    }

    TempFolder folder_;
    std::unique_ptr<Device> device_;
    std::unique_ptr<Stream> stream_;
};

class GridSampleRules
    : public GridSampleTest,
      public ::testing::WithParamInterface<std::tuple<const char*, const char*, bool>> {};

TEST_P(GridSampleRules, EqualsTheReference) {
    const auto& [mode, padding, align] = GetParam();
    const Case rule{mode, padding, align};
    // Odd extents, a channel count that is no multiple of a vector, more channels than one tile,
    // one voxel along an axis, two pictures.
    const std::vector<std::pair<Shape, Shape>> shapes{{{2, 3, 4, 5, 7}, {2, 3, 5, 11, 3}},
                                                      {{1, 70, 3, 2, 8}, {1, 2, 3, 9, 3}},
                                                      {{1, 2, 1, 6, 1}, {1, 4, 4, 4, 3}}};
    for (const auto& [volume_shape, grid_shape] : shapes) {
        const auto volume = random_volume(volume_shape);
        const auto grid = hard_grid(static_cast<size_t>(element_count(grid_shape)), 9);
        const auto sampled = sample(model("GridSample",
                                          {{"mode", rule.mode},
                                           {"padding_mode", rule.padding},
                                           {"align_corners", static_cast<int64_t>(align)}},
                                          volume_shape, grid_shape, 20),
                                    volume, grid);
        expect_reference(rule, volume_shape, grid_shape, volume, grid, sampled);
    }
}

INSTANTIATE_TEST_SUITE_P(All, GridSampleRules,
                         ::testing::Combine(::testing::Values("linear", "nearest"),
                                            ::testing::Values("zeros", "border", "reflection"),
                                            ::testing::Bool()));

TEST_F(GridSampleTest, AcceptsThePluginNodeAndTheOlderModeName) {
    const Shape volume_shape{1, 2, 3, 4, 5};
    const Shape grid_shape{1, 3, 4, 5, 3};
    const auto volume = random_volume(volume_shape);
    const auto grid = hard_grid(180, 4);
    const auto plugin = sample(model("GridSample3D",
                                     {{"interpolation_mode", int64_t{0}},
                                      {"padding_mode", int64_t{1}},
                                      {"align_corners", int64_t{1}}},
                                     volume_shape, grid_shape, 16),
                               volume, grid);
    expect_reference({"linear", "border", true}, volume_shape, grid_shape, volume, grid, plugin);
    const auto older = sample(
        model("GridSample", {{"mode", std::string("bilinear")}}, volume_shape, grid_shape, 16),
        volume, grid);
    expect_reference({"linear", "zeros", false}, volume_shape, grid_shape, volume, grid, older);
}

// A CPU with native half floats hands the operator f16 where a graph runs in f16.
TEST_F(GridSampleTest, RunsInEveryPrecisionOfTheCpu) {
    const Shape volume_shape{1, 5, 3, 4, 5};
    const Shape grid_shape{1, 3, 4, 5, 3};
    const auto volume = random_volume(volume_shape);
    std::vector<float> grid(180);
    for (size_t i = 0; i < grid.size(); ++i) {  // exact in all of them
        grid[i] = static_cast<float>((i * 37) % 129) / 64.0F - 1.0F;
    }
    const auto sampled = [&](Precision precision) {
        // Something before and after: plugins leave the types of a graph's own ends alone.
        const Shape target{1, 5, 3, 4, 5};
        const OnnxBuilder graph = OnnxBuilder(20)
                                      .input("volume", volume_shape)
                                      .input("grid", grid_shape)
                                      .node("Identity", {"volume"}, {"same"}, {})
                                      .node("Abs", {"same"}, {"positive"}, {})
                                      .node("Tanh", {"grid"}, {"bent"}, {})
                                      .node("GridSample", {"positive", "bent"}, {"raw"},
                                            {{"mode", std::string("linear")},
                                             {"padding_mode", std::string("border")},
                                             {"align_corners", int64_t{1}}})
                                      .node("Neg", {"raw"}, {"sampled"}, {})
                                      .output("sampled", target);
        return sample(graph, volume, grid, precision);
    };
    const auto exact = sampled(Precision::f32);
    for (const Precision precision : device_->info().precisions) {
        if (precision == Precision::int8) continue;
        const auto values = sampled(precision);
        ASSERT_EQ(values.size(), exact.size());
        for (size_t i = 0; i < values.size(); ++i) {
            EXPECT_NEAR(values[i], exact[i], 0.05) << name_of(precision) << ' ' << i;
        }
    }
}

// NaN and infinities must not read outside the volume: finite values, or 0 for zeros padding.
TEST_F(GridSampleTest, NonFiniteGridsAreSafe) {
    const Shape volume_shape{1, 1, 2, 3, 4};
    const Shape grid_shape{1, 1, 1, 6, 3};
    const auto volume = random_volume(volume_shape);
    constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
    constexpr float kInf = std::numeric_limits<float>::infinity();
    constexpr float kMax = std::numeric_limits<float>::max();
    const std::vector<float> grid{kNan, 0.0F, 0.0F,  0.0F, kNan, 0.0F, 0.0F, 0.0F,  kNan,
                                  kInf, 0.0F, -kInf, kNan, kNan, kNan, kMax, -kMax, kMax};
    for (const char* mode : {"linear", "nearest"}) {
        for (const char* padding : {"zeros", "border", "reflection"}) {
            const auto sampled =
                sample(model("GridSample",
                             {{"mode", std::string(mode)}, {"padding_mode", std::string(padding)}},
                             volume_shape, grid_shape, 20),
                       volume, grid);
            const auto [low, high] = std::ranges::minmax(volume);
            for (const float value : sampled) {
                if (std::string(padding) == "zeros") {
                    EXPECT_EQ(value, 0.0F) << mode;
                } else {
                    EXPECT_TRUE(value >= low && value <= high) << mode << padding << value;
                }
            }
        }
    }
}

// The 4-D form goes to OpenVINO's own operator with the attributes intact.
TEST_F(GridSampleTest, FourDimensionalFormStillWorks) {
    const Shape picture_shape{1, 2, 4, 5};
    const Shape grid_shape{1, 6, 7, 2};
    const auto picture = random_volume(picture_shape);
    const auto flat = hard_grid(84, 21);
    for (const char* padding : {"zeros", "border", "reflection"}) {
        for (const int64_t align : {0, 1}) {
            const auto sampled = sample(model("GridSample",
                                              {{"mode", std::string("bilinear")},
                                               {"padding_mode", std::string(padding)},
                                               {"align_corners", align}},
                                              picture_shape, grid_shape, 16),
                                        picture, flat);
            const Case rule{"linear", padding, align != 0};
            for (size_t p = 0; p < 42; ++p) {
                // Skip what floats cannot place exactly, far outside.
                if (std::abs(flat[2 * p]) > 60.0F || std::abs(flat[2 * p + 1]) > 60.0F) continue;
                const std::array<float, 3> g{flat[2 * p], flat[2 * p + 1],
                                             align != 0 ? -1.0F : 0.0F};
                for (int64_t c = 0; c < 2; ++c) {
                    const auto wanted = reference(rule, picture, {1, 2, 1, 4, 5}, c, g.data());
                    EXPECT_NEAR(sampled[static_cast<size_t>(c) * 42 + p], *wanted, 2e-4)
                        << padding << align << ' ' << g[0] << ' ' << g[1];
                }
            }
        }
    }
}

TEST_F(GridSampleTest, BadAttributesAreBadPacks) {
    const Shape volume{1, 1, 2, 2, 2};
    const Shape grid{1, 2, 2, 2, 3};
    const std::vector<std::pair<std::string, OnnxAttributes>> bad{
        {"GridSample", {{"mode", std::string("cubic")}}},
        {"GridSample", {{"padding_mode", std::string("wrap")}}},
        {"GridSample3D", {{"interpolation_mode", int64_t{2}}}},
        {"GridSample3D", {{"padding_mode", int64_t{-1}}}}};
    for (const auto& [op, attributes] : bad) {
        const auto file = model(op, attributes, volume, grid, 20).save(folder_.path() / "bad.onnx");
        try {
            (void)device_->load(file, "", {});
            ADD_FAILURE() << op << " was accepted";
        } catch (const Error& e) {
            EXPECT_EQ(e.code(), ErrorCode::bad_pack);
            EXPECT_THAT(e.what(), ::testing::HasSubstr("GridSample"));
        }
    }
}

}  // namespace
}  // namespace newscaster::device
