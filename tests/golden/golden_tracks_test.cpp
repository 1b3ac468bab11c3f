// Audio chunking, motion tracks and composition against Ditto's own modules
// (training/reference/ditto_tracks.py; docs/parity.md).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "avatar/avatar.h"
#include "core/file.h"
#include "core/safetensors.h"
#include "features/feature_streamer.h"
#include "motion/composer.h"
#include "motion/motion_generator.h"
#include "motion/motion_mixer.h"
#include "motion/stitcher.h"
#include "pack/pack.h"
#include "seeded_weights.h"

namespace newscaster {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr double kTolerance = 1e-4;
constexpr double kWantedCosine = 0.99999;
constexpr size_t kCharacterSources = 2;

fs::path goldens() {
    return fs::path(NEWSCASTER_SOURCE_DIR) / "tests/golden/ditto";
}

const json& description() {
    static const json document = json::parse(read_text(goldens() / "tracks.json"));
    return document;
}

// Rows of made-up motion [rows][dims], span by span as ditto_tracks.motion_rows.
std::vector<std::vector<float>> motion_rows(const std::string& name, size_t rows) {
    std::vector<std::vector<float>> result(rows);
    for (const auto& span : description().at("spans")) {
        const auto size = span.at(1).get<size_t>();
        const auto half = span.at(2).get<double>();
        const auto values = test::formula_input(name + "." + span.at(0).get<std::string>(),
                                                rows * size, -half, half);
        for (size_t i = 0; i < values.size(); ++i) result[i / size].push_back(values[i]);
    }
    return result;
}

std::vector<std::vector<float>> rows_of(const std::string& name, size_t rows, size_t columns,
                                        double low, double high) {
    const auto values = test::formula_input(name, rows * columns, low, high);
    std::vector<std::vector<float>> result;
    for (size_t i = 0; i < rows; ++i) {
        const auto begin = values.begin() + static_cast<std::ptrdiff_t>(i * columns);
        result.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(columns));
    }
    return result;
}

// What ditto_tracks.avatar makes up.
struct Person {
    Person(const std::string& name, size_t sources)
        : eye_open(rows_of(name + ".eye_open", sources, 2, 0.0, 0.4)),
          eye_ball(rows_of(name + ".eye_ball", sources, 6, -0.4, 0.4)) {
        const auto motion = motion_rows(name + ".motion", sources);
        const auto keypoints = rows_of(name + ".kp", sources, 63, -0.4, 0.4);
        for (size_t i = 0; i < sources; ++i) {
            poses.push_back({.canonical_keypoints = keypoints[i], .motion = motion[i]});
        }
    }
    std::vector<motion::SourcePose> poses;
    std::vector<std::vector<float>> eye_open;
    std::vector<std::vector<float>> eye_ball;
};

TensorMap made_up_constants(const json& names) {
    TensorMap constants;
    const auto add = [&](const std::string& name, Shape shape, const std::vector<float>& values) {
        constants[name] = Tensor::of<float>(std::move(shape), std::span<const float>(values));
    };
    for (const std::string name : names) {
        if (name == "blink_offsets") {
            add(name, {15, 63}, test::formula_input(name, 15 * 63, -0.05, 0.05));
            continue;
        }
        auto limits = test::formula_input(name.substr(7), 265, 0.01, 0.3);
        if (name == "motion_clip_low") {
            for (float& limit : limits) limit = -limit;
        }
        add(name, {265}, limits);
    }
    return constants;
}

// One entry of tracks.json; prints as its name.
struct Case {
    json entry;
    friend std::ostream& operator<<(std::ostream& out, const Case& shown) {
        return out << shown.entry.at("name").get<std::string>();
    }
};

class GoldenTracks : public ::testing::TestWithParam<Case> {
  protected:
    // The seeded pack with the case's changes, in a folder of its own.
    static pack::Pack changed_pack(const json& entry) {
        const fs::path original = NEWSCASTER_DITTO_PACK;
        const fs::path folder = fs::path(::testing::TempDir()) /
                                ("newscaster_tracks_" + entry.at("name").get<std::string>() +
                                 std::to_string(::getpid()));
        fs::remove_all(folder);
        fs::create_directories(folder);
        for (const auto& file : fs::directory_iterator(original)) {
            const auto extension = file.path().extension();
            if (extension != ".onnx" && extension != ".weights") continue;
            fs::create_hard_link(file.path(), folder / file.path().filename());
        }
        auto constants = read_safetensors(original / "constants.safetensors");
        for (auto& [name, tensor] : made_up_constants(entry.at("constants"))) {
            constants[name] = std::move(tensor);
        }
        write_safetensors(folder / "constants.safetensors", constants);
        json manifest = json::parse(read_text(original / "pack.json"));
        for (const auto& [pointer, value] : entry.at("manifest").items()) {
            manifest[json::json_pointer(pointer)] = value;
        }
        manifest["constants"]["sha256"] = sha256_of_file(folder / "constants.safetensors");
        write_text_atomic(folder / "pack.json", manifest.dump());
        return pack::Pack::open(folder);
    }

    GoldenTracks() : pack_(changed_pack(GetParam().entry)) {}
    ~GoldenTracks() override { fs::remove_all(pack_.folder()); }

    [[nodiscard]] Controls controls() const {
        return parse_controls(GetParam().entry.at("controls").dump(), "controls");
    }
    [[nodiscard]] Person source() const {
        return {"source", GetParam().entry.at("sources").get<size_t>()};
    }
    [[nodiscard]] bool has_character() const {
        return GetParam().entry.at("character").get<bool>();
    }
    [[nodiscard]] std::span<const float> golden(size_t index) const {
        return golden_.at(GetParam().entry.at("tensors").at(index).get<std::string>()).as<float>();
    }
    std::unique_ptr<device::Graph> load(std::string_view role) {
        return pack_.load_graph(*device_, role, device::Precision::f32, 1);
    }

    pack::Pack pack_;
    TensorMap golden_ = read_safetensors(goldens() / "tracks.safetensors");
    std::unique_ptr<device::Device> device_ = device::open_device("cpu", {});
    int64_t frames_ = description().at("frames");
    uint64_t seed_ = description().at("seed");
};

struct Difference {
    double max_abs = 0.0;
    double cosine = 0.0;
};

Difference compare(std::span<const float> found, std::span<const float> wanted) {
    EXPECT_EQ(found.size(), wanted.size());
    Difference difference;
    double products = 0.0;
    double found_squares = 0.0;
    double wanted_squares = 0.0;
    for (size_t i = 0; i < std::min(found.size(), wanted.size()); ++i) {
        const double a = found[i];
        const double b = wanted[i];
        EXPECT_TRUE(std::isfinite(a));
        difference.max_abs = std::max(difference.max_abs, std::abs(a - b));
        products += a * b;
        found_squares += a * a;
        wanted_squares += b * b;
    }
    difference.cosine = products / std::sqrt(found_squares * wanted_squares);
    return difference;
}

// Every stride-th row, flat.
std::vector<float> strided(const std::vector<float>& rows, size_t dims, size_t stride) {
    std::vector<float> kept;
    for (size_t begin = 0; begin < rows.size(); begin += dims * stride) {
        const auto first = rows.begin() + static_cast<std::ptrdiff_t>(begin);
        kept.insert(kept.end(), first, first + static_cast<std::ptrdiff_t>(dims));
    }
    return kept;
}

class GoldenTrack : public GoldenTracks {};

TEST_P(GoldenTrack, EqualsUpstreams) {
    const auto& manifest = pack_.manifest();
    const auto dims = static_cast<size_t>(manifest.motion.dims);
    const auto feature_dims = manifest.audio.feature_dims;
    const Person person = has_character() ? Person("character", kCharacterSources) : source();
    const auto sources = static_cast<int64_t>(person.poses.size());
    motion::MotionOptions options;
    options.seed = seed_;
    options.controls = motion::ControlTrack(manifest, controls(), "");
    options.avatar = {
        .eye_open = person.eye_open,
        .eye_ball = person.eye_ball,
        .source_keypoints = person.poses.front().canonical_keypoints,
        .source_of = [sources](int64_t frame) { return avatar::mirror_loop(frame, sources); }};
    options.source_motion = person.poses.front().motion;
    const auto graph = load(pack::role::kMotionGenerator);
    motion::MotionGenerator generator(
        pack_, *device_, *graph, options,
        test::formula_input("lead_in", static_cast<size_t>(2 * feature_dims), -1.0, 1.0));
    const auto features =
        test::formula_input("features", static_cast<size_t>(frames_ * feature_dims), -1.0, 1.0);

    std::vector<float> track;
    const auto take = [&](const std::vector<MotionBlock>& blocks) {
        for (const auto& block : blocks) {
            const auto values = block.rows.as<float>();
            track.insert(track.end(), values.begin(), values.end());
        }
    };
    take(generator.push(
        {.first_frame = 0,
         .rows = Tensor::of<float>({frames_, feature_dims}, std::span<const float>(features))}));
    take(generator.finish());
    ASSERT_EQ(track.size(), static_cast<size_t>(frames_) * dims);

    const auto kept = strided(track, dims, GetParam().entry.at("stride").get<size_t>());
    const Difference found = compare(kept, golden(0));
    RecordProperty("max_abs_error", fmt::format("{:.1e}", found.max_abs));
    RecordProperty("1_minus_cosine", fmt::format("{:.1e}", 1.0 - found.cosine));
    EXPECT_LE(found.max_abs, kTolerance);
    EXPECT_GE(found.cosine, kWantedCosine);
    auto reference = generator.reference_row();
    if (reference.empty()) {
        // Offline the first frame itself, which smoothing may still change after upstream's first
        // window: nothing reads upstream's row then.
        return;
    }
    EXPECT_LE(compare(reference, golden(1)).max_abs, kTolerance);
}

class GoldenComposition : public GoldenTracks {};

TEST_P(GoldenComposition, EqualsUpstreams) {
    const auto& manifest = pack_.manifest();
    const Person person = source();
    const auto sources = static_cast<int64_t>(person.poses.size());
    const Controls asked = controls();
    const auto scale_of = [](const Person& who) { return double{who.poses[0].motion[0]} + 1.0; };
    const double ratio =
        has_character() ? scale_of(Person("character", kCharacterSources)) / scale_of(person) : 1.0;
    const motion::Composer composer(pack_, person.poses);
    motion::MotionMixer mixer(pack_, person.poses,
                              {.controls = motion::ControlTrack(manifest, asked, ""),
                               .seed = seed_,
                               .scale_ratio = ratio});
    std::unique_ptr<device::Graph> graph;
    std::unique_ptr<motion::Stitcher> stitcher;
    if (asked.stitching.value_or(manifest.motion.composition->stitching)) {
        graph = load(pack::role::kStitch);
        stitcher = std::make_unique<motion::Stitcher>(manifest.graph(pack::role::kStitch), *device_,
                                                      *graph);
    }
    std::vector<float> keypoints;
    const auto draw = [&](const std::vector<motion::MixedFrame>& frames) {
        for (const auto& frame : frames) {
            auto points = composer.driving_keypoints(frame.motion, frame.source);
            if (stitcher) {
                const std::vector<motion::Stitcher::Frame> one{
                    {composer.source_keypoints(frame.source), points}};
                stitcher->stitch(one);
            }
            keypoints.insert(keypoints.end(), points.begin(), points.end());
        }
    };
    const auto driving = motion_rows("driving", static_cast<size_t>(frames_));
    for (int64_t i = 0; i < frames_; ++i) {
        draw(mixer.push(driving[static_cast<size_t>(i)], avatar::mirror_loop(i, sources)));
    }
    draw(mixer.finish());
    const size_t dims = 63;
    ASSERT_EQ(keypoints.size(), static_cast<size_t>(frames_) * dims);
    const auto kept = strided(keypoints, dims, GetParam().entry.at("stride").get<size_t>());
    const Difference found = compare(kept, golden(0));
    RecordProperty("max_abs_error", fmt::format("{:.1e}", found.max_abs));
    EXPECT_LE(found.max_abs, kTolerance);
}

std::string name_of_case(const ::testing::TestParamInfo<Case>& info) {
    return info.param.entry.at("name").get<std::string>();
}

std::vector<Case> cases(const char* kind) {
    std::vector<Case> result;
    for (const auto& entry : description().at(kind)) result.push_back({entry});
    return result;
}

INSTANTIATE_TEST_SUITE_P(Ditto, GoldenTrack, ::testing::ValuesIn(cases("tracks")), name_of_case);
INSTANTIATE_TEST_SUITE_P(Ditto, GoldenComposition, ::testing::ValuesIn(cases("compositions")),
                         name_of_case);

// Upstream's offline mode reads its extra samples before the chunk, the online mode after it.
TEST(GoldenFeatures, ChunksEqualUpstreams) {
    const auto pack = pack::Pack::open(NEWSCASTER_DITTO_PACK);
    const auto device = device::open_device("cpu", {});
    const auto graph =
        pack.load_graph(*device, pack::role::kAudioEncoder, device::Precision::f32, 1);
    const auto golden = read_safetensors(goldens() / "tracks.safetensors");
    const auto count = description().at("audio_samples").get<size_t>();
    const auto audio = test::formula_input("audio", count, -0.1, 0.1);
    pack::Manifest manifest = pack.manifest();
    const auto frames = frames_covering(static_cast<int64_t>(count), manifest.audio.sample_rate_hz,
                                        manifest.frame_rate);
    for (const std::string mode : {"offline", "online"}) {
        if (mode == "online") manifest.audio.lead_samples = 0;
        features::FeatureStreamer streamer(manifest, *device, *graph);
        std::vector<float> rows;
        for (const auto& blocks : {streamer.push(audio), streamer.finish(frames)}) {
            for (const auto& block : blocks) {
                const auto values = block.rows.as<float>();
                rows.insert(rows.end(), values.begin(), values.end());
            }
        }
        const Difference found = compare(rows, golden.at("features." + mode).as<float>());
        RecordProperty("max_abs_error_" + mode, fmt::format("{:.1e}", found.max_abs));
        EXPECT_LE(found.max_abs, kTolerance) << mode;
    }
}

}  // namespace
}  // namespace newscaster
