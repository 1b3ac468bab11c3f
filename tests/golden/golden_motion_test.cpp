// The engine against the Python reference (training/reference/reference_inference.py) on
// examples/speech.wav: features, motion and driving keypoints, in f32.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/file.h"
#include "core/safetensors.h"
#include "features/feature_streamer.h"
#include "motion/composer.h"
#include "motion/motion_export.h"
#include "motion/motion_generator.h"

namespace newscaster {
namespace {

namespace fs = std::filesystem;

constexpr double kTolerance = 1e-3;
constexpr int64_t kKeypointStride = 8;  // of the golden keypoints
constexpr size_t kWavHeaderBytes = 44;  // RIFF, fmt and data headers of a plain PCM file

fs::path source_dir() {
    return NEWSCASTER_SOURCE_DIR;
}

std::vector<float> read_speech() {
    const auto bytes = read_file(source_dir() / "examples/speech.wav");
    std::vector<float> samples((bytes.size() - kWavHeaderBytes) / 2);
    for (size_t i = 0; i < samples.size(); ++i) {
        int16_t value = 0;
        std::memcpy(&value, bytes.data() + kWavHeaderBytes + 2 * i, sizeof(value));
        samples[i] = static_cast<float>(value) / 32768.0F;
    }
    return samples;
}

double max_error(std::span<const float> found, std::span<const float> wanted) {
    EXPECT_EQ(found.size(), wanted.size());
    double error = 0.0;
    for (size_t i = 0; i < std::min(found.size(), wanted.size()); ++i) {
        EXPECT_TRUE(std::isfinite(found[i]));
        error = std::max(error, std::abs(static_cast<double>(found[i]) - wanted[i]));
    }
    return error;
}

class GoldenMotion : public ::testing::Test {
  protected:
    GoldenMotion()
        : pack_(pack::Pack::open(source_dir() / "packs/studio")),
          golden_(read_safetensors(source_dir() / "tests/golden/speech.safetensors")),
          device_(device::open_device("cpu", {})) {}

    std::unique_ptr<device::Graph> load(std::string_view role) {
        return pack_.load_graph(*device_, role, device::Precision::f32, 1);
    }
    [[nodiscard]] std::span<const float> golden(const std::string& name) const {
        return golden_.at(name).as<float>();
    }
    std::vector<float> features(const std::vector<float>& samples) {
        const auto graph = load(pack::role::kAudioEncoder);
        features::FeatureStreamer streamer(pack_.manifest(), *device_, *graph);
        const auto frames =
            frames_covering(static_cast<int64_t>(samples.size()),
                            pack_.manifest().audio.sample_rate_hz, pack_.manifest().frame_rate);
        silence_ = streamer.silence_rows();
        std::vector<float> rows;
        for (const auto& blocks : {streamer.push(samples), streamer.finish(frames)}) {
            for (const auto& block : blocks) append(rows, block.rows);
        }
        return rows;
    }
    // Needs silence_, which features() sets.
    std::vector<float> motion(std::span<const float> rows, uint64_t seed) {
        const auto graph = load(pack::role::kMotionGenerator);
        motion::MotionOptions options;
        options.seed = seed;
        motion::MotionGenerator generator(pack_, *device_, *graph, options, silence_);
        const int64_t dims = pack_.manifest().audio.feature_dims;
        const FeatureBlock block{
            .first_frame = 0,
            .rows = Tensor::of<float>({static_cast<int64_t>(rows.size()) / dims, dims}, rows)};
        std::vector<float> track;
        for (const auto& blocks : {generator.push(block), generator.finish()}) {
            for (const auto& part : blocks) append(track, part.rows);
        }
        return track;
    }
    [[nodiscard]] std::vector<double> channel(std::span<const float> track, size_t dim) const {
        std::vector<double> values;
        const auto dims = static_cast<size_t>(pack_.manifest().motion.dims);
        for (size_t i = dim; i < track.size(); i += dims) values.push_back(track[i]);
        return values;
    }
    [[nodiscard]] size_t blendshape(const std::string& name) const {
        const auto* span = pack_.manifest().motion.find(pack::SpanKind::blendshapes);
        const auto found = std::find(span->channels.begin(), span->channels.end(), name);
        return static_cast<size_t>(span->offset + (found - span->channels.begin()));
    }
    static void append(std::vector<float>& target, const Tensor& rows) {
        const auto values = rows.as<float>();
        target.insert(target.end(), values.begin(), values.end());
    }

    pack::Pack pack_;
    TensorMap golden_;
    std::unique_ptr<device::Device> device_;
    std::vector<float> silence_;
};

double deviation(const std::vector<double>& values) {
    double sum = 0.0;
    double squares = 0.0;
    for (const double v : values) {
        sum += v;
        squares += v * v;
    }
    const auto n = static_cast<double>(values.size());
    return std::sqrt(std::max(0.0, squares / n - sum / n * sum / n));
}

double correlation(const std::vector<double>& a, const std::vector<double>& b) {
    const auto n = static_cast<double>(a.size());
    double sum_a = 0.0;
    double sum_b = 0.0;
    double product = 0.0;
    for (size_t i = 0; i < a.size(); ++i) {
        sum_a += a[i];
        sum_b += b[i];
        product += a[i] * b[i];
    }
    return (product / n - sum_a / n * sum_b / n) / (deviation(a) * deviation(b));
}

TEST_F(GoldenMotion, FeaturesMotionAndKeypointsEqualTheReference) {
    const auto rows = features(read_speech());
    const double feature_error = max_error(rows, golden("features"));
    const auto track = motion(rows, pack_.manifest().motion.diffusion.default_seed);
    const double motion_error = max_error(track, golden("motion"));

    const auto canonical = golden("canonical_keypoints");
    const auto source = golden("source_motion");
    const motion::Composer composer(pack_,
                                    {{.canonical_keypoints = {canonical.begin(), canonical.end()},
                                      .motion = {source.begin(), source.end()}}});
    const auto dims = static_cast<size_t>(pack_.manifest().motion.dims);
    std::vector<float> keypoints;
    for (size_t at = 0; at < track.size(); at += kKeypointStride * dims) {
        const auto frame = composer.driving_keypoints(std::span(track).subspan(at, dims), 0);
        keypoints.insert(keypoints.end(), frame.begin(), frame.end());
    }
    const double keypoint_error = max_error(keypoints, golden("keypoints"));

    RecordProperty("feature_error", std::to_string(feature_error));
    RecordProperty("motion_error", std::to_string(motion_error));
    RecordProperty("keypoint_error", std::to_string(keypoint_error));
    EXPECT_LE(feature_error, kTolerance);
    EXPECT_LE(motion_error, kTolerance);
    EXPECT_LE(keypoint_error, kTolerance);
}

TEST_F(GoldenMotion, SeedsMoveTheHeadDifferentlyAndTheLipsAlike) {
    const auto rows = features(read_speech());
    const auto first = motion(rows, 1);
    const auto second = motion(rows, 2);
    const auto yaw =
        static_cast<size_t>(pack_.manifest().motion.find(pack::SpanKind::yaw_deg)->offset);
    EXPECT_LT(correlation(channel(first, yaw), channel(second, yaw)), 0.9);
    for (const char* name : {"jawOpen", "mouthLowerDownLeft", "mouthPressLeft"}) {
        const size_t dim = blendshape(name);
        EXPECT_GT(correlation(channel(first, dim), channel(second, dim)), 0.8) << name;
    }
}

TEST_F(GoldenMotion, SilenceClosesTheMouthAndKeepsTheFaceAlive) {
    constexpr size_t kSeconds = 20;
    const auto rows = features(std::vector<float>(kSeconds * 16000));
    const auto track = motion(rows, 3);
    const auto jaw = channel(track, blendshape("jawOpen"));
    EXPECT_LT(*std::max_element(jaw.begin(), jaw.end()), 0.02);

    const auto& spec = pack_.manifest().motion;
    double head = 0.0;
    for (const auto kind :
         {pack::SpanKind::pitch_deg, pack::SpanKind::yaw_deg, pack::SpanKind::roll_deg}) {
        head += deviation(channel(track, static_cast<size_t>(spec.find(kind)->offset)));
    }
    EXPECT_GT(head, 0.5);  // degrees
    const auto lids = channel(track, blendshape("eyeBlinkLeft"));
    EXPECT_GT(*std::max_element(lids.begin(), lids.end()), 0.8);
    EXPECT_LT(*std::min_element(lids.begin(), lids.end()), 0.1);
}

// Writes golden_motion.npz into the working folder, where check_npz.py reads it with numpy.
TEST_F(GoldenMotion, ExportsTheGoldenTrack) {
    const auto exporter = motion::MotionExporter::open("golden_motion.npz", pack_.manifest());
    const auto& track = golden_.at("motion");
    for (int64_t i = 0; i < track.dim(0); ++i) exporter->write(i, track.row(i));
    exporter->finish();
    EXPECT_TRUE(fs::exists("golden_motion.npz"));
}

}  // namespace
}  // namespace newscaster
