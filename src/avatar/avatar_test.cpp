#include "avatar/avatar.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "avatar/avatar_document.h"
#include "core/file.h"
#include "media/image.h"
#include "pack/test_support.h"

namespace newscaster::avatar {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;
using testing_support::Change;
using testing_support::changed;
using testing_support::error_of;
using testing_support::scratch;
using testing_support::source_path;

pack::Manifest studio() {
    const auto file = source_path("packs/studio/pack.json");
    return pack::parse_manifest(read_text(file), file.string());
}

Avatar load(const fs::path& folder) {
    const pack::Manifest manifest = studio();
    return load_avatar(folder, manifest, pack::avatar_key(manifest));
}

json anna() {
    return json::parse(read_text(source_path("avatars/anna/avatar.json")));
}

// A private copy of a shipped avatar, to be damaged.
fs::path copy_of_anna() {
    fs::path folder = scratch("avatar");
    fs::copy(source_path("avatars/anna"), folder,
             fs::copy_options::recursive | fs::copy_options::overwrite_existing);
    return folder;
}

void edit(const fs::path& folder, const std::function<void(json&)>& change) {
    json document = json::parse(read_text(folder / "avatar.json"));
    change(document);
    write_text_atomic(folder / "avatar.json", document.dump());
}

// Rewrites the tensors and their hash, then loads; the error's text.
std::string error_with_tensors(const std::function<void(TensorMap&)>& change) {
    const fs::path folder = copy_of_anna();
    const fs::path file = folder / "tensors.safetensors";
    TensorMap tensors = read_safetensors(file);
    change(tensors);
    write_safetensors(file, tensors);
    edit(folder, [&](json& document) { document["tensors"]["sha256"] = sha256_of_file(file); });
    return error_of([&] { (void)load(folder); });
}

TEST(MirrorLoop, PlaysForthAndBackShowingTheEndsTwice) {
    std::vector<int64_t> shown;
    for (int64_t i = 0; i < 9; ++i) shown.push_back(mirror_loop(i, 3));
    EXPECT_EQ(shown, (std::vector<int64_t>{0, 1, 2, 2, 1, 0, 0, 1, 2}));
    EXPECT_EQ(mirror_loop(0, 1), 0);
    EXPECT_EQ(mirror_loop(12'345, 1), 0);
}

TEST(MirrorLoop, NeverJumps) {
    for (const int64_t count : {1, 2, 7, 100}) {
        for (int64_t i = 0; i < 5 * count; ++i) {
            const int64_t here = mirror_loop(i, count);
            ASSERT_GE(here, 0);
            ASSERT_LT(here, count);
            ASSERT_LE(std::abs(mirror_loop(i + 1, count) - here), 1);
        }
    }
}

class ShippedAvatar : public testing::TestWithParam<const char*> {};

TEST_P(ShippedAvatar, Loads) {
    const Avatar avatar = load(source_path(std::string("avatars/") + GetParam()));
    EXPECT_EQ(avatar.name, GetParam());
    EXPECT_EQ(avatar.width, 1920);
    EXPECT_EQ(avatar.height, 1080);
    EXPECT_EQ(avatar.source_frames(), 1);
    EXPECT_EQ(avatar.crop_to_canvas[0], (Affine{500.0 / 512, 0, 710, 0, 500.0 / 512, 160}));
    EXPECT_EQ(avatar.mask.inset_px, 4.0);
    EXPECT_EQ(avatar.tensors.at("kp_canonical").shape(), (Shape{1, 48, 3}));
    EXPECT_EQ(avatar.tensors.at("f256").dtype(), DType::f32);
    // Stored as u8 0..255; a picture of a lit face is neither dark nor beyond 1.
    const auto rgb = avatar.tensors.at("rgb").as<float>();
    const float brightest = *std::max_element(rgb.begin(), rgb.end());
    EXPECT_GT(brightest, 0.5F);
    EXPECT_LE(brightest, 1.0F);
}

INSTANTIATE_TEST_SUITE_P(All, ShippedAvatar, testing::Values("anna", "marcus", "mei"));

TEST(Summary, NeedsNoPack) {
    const AvatarSummary summary = summarize_avatar(source_path("avatars/mei"));
    EXPECT_EQ(summary.title, "Mei");
    EXPECT_EQ(summary.pack_name, "studio");
    EXPECT_EQ(summary.avatar_key, pack::avatar_key(studio()));
    EXPECT_EQ(summary.source_frames, 1);
    EXPECT_EQ(summary.tensor_bytes, fs::file_size(source_path("avatars/mei/tensors.safetensors")));
}

TEST(LoadAvatar, TellsWhichPackItWasMadeForAndWhatToDo) {
    const pack::Manifest manifest = studio();
    const std::string other(64, 'a');
    const std::string message =
        error_of([&] { (void)load_avatar(source_path("avatars/anna"), manifest, other); });
    EXPECT_THAT(message, HasSubstr("avatar.json: pack: found an avatar made for pack 'studio'"));
    EXPECT_THAT(message, HasSubstr(pack::avatar_key(manifest)));
    EXPECT_THAT(message, HasSubstr(other));
    EXPECT_THAT(message, HasSubstr("make it again with"));
}

TEST(LoadAvatar, RefusesMissingAndDamagedFiles) {
    EXPECT_THAT(error_of([] { (void)load(scratch("avatar")); }), HasSubstr("avatar.json"));
    fs::path folder = copy_of_anna();
    fs::remove(folder / "canvas.png");
    EXPECT_THAT(error_of([&] { (void)load(folder); }), HasSubstr("canvas.png: the canvas"));
    folder = copy_of_anna();
    fs::resize_file(folder / "tensors.safetensors", 1'000'000);
    EXPECT_THAT(error_of([&] { (void)load(folder); }), HasSubstr("damaged or replaced"));
    fs::remove(folder / "tensors.safetensors");
    EXPECT_THAT(error_of([&] { (void)load(folder); }), HasSubstr("tensors.safetensors"));
    EXPECT_THAT(error_of([&] { (void)summarize_avatar(folder); }), HasSubstr("missing"));
}

TEST(LoadAvatar, ChecksEveryTensorTheEngineWillAskFor) {
    for (const auto* name :
         {"f64", "f128", "f256", "rgb", "kp_source", "kp_canonical", "source_motion"}) {
        EXPECT_THAT(error_with_tensors([&](TensorMap& tensors) { tensors.erase(name); }),
                    HasSubstr(std::string("tensor '") + name + "' is missing"));
    }
    EXPECT_THAT(error_with_tensors([](auto& t) {
                    t.at("kp_source") = Tensor(DType::f32, {1, 47, 3});
                }),
                HasSubstr("'kp_source': found shape [1,47,3], wanted [1,48,3]"));
    EXPECT_THAT(error_with_tensors([](auto& t) {
                    t.at("rgb") = Tensor(DType::u8, {2, 3});
                }),
                HasSubstr("wanted 1 on the first axis"));
    EXPECT_THAT(
        error_with_tensors([](auto& t) { t.at("source_motion").template as<float>()[5] = NAN; }),
        HasSubstr("'source_motion': found a value that is not finite"));
}

TEST(LoadAvatar, SeveralSourceFramesShareOrOwnTheirCanvas) {
    const fs::path folder = copy_of_anna();
    const fs::path file = folder / "tensors.safetensors";
    TensorMap doubled;
    for (const auto& [name, tensor] : read_safetensors(file)) {
        Shape shape = tensor.shape();
        shape[0] = 2;
        Tensor both(tensor.dtype(), shape);
        std::copy_n(tensor.data(), tensor.bytes(), both.data());
        std::copy_n(tensor.data(), tensor.bytes(), both.data() + tensor.bytes());
        doubled.emplace(name, std::move(both));
    }
    write_safetensors(file, doubled);
    edit(folder, [&](json& document) {
        document["tensors"]["sha256"] = sha256_of_file(file);
        document["source_frames"].push_back(document["source_frames"][0]);
        document["mask"] = {{"inset_px", 0}, {"feather_px", 12.5}};
    });
    const Avatar avatar = load(folder);
    EXPECT_EQ(avatar.source_frames(), 2);
    EXPECT_EQ(avatar.canvas_files.size(), 1U);
    EXPECT_EQ(avatar.mask.feather_px, 12.5);
    EXPECT_EQ(avatar.features_of, (std::vector<int64_t>{0, 1}));
    EXPECT_EQ(avatar.opacity, (std::vector<double>{1.0, 1.0}));
    edit(folder, [](json& d) { d["mask"] = {{"inset_px", 200}, {"feather_px", 100}}; });
    EXPECT_THAT(error_of([&] { (void)load(folder); }), HasSubstr("mask: found"));
}

// Three source frames, the first and the last drawn with the same features, the middle one hidden.
TEST(LoadAvatar, SourceFramesThatLookAlikeShareFeatures) {
    const fs::path folder = copy_of_anna();
    const fs::path file = folder / "tensors.safetensors";
    TensorMap tensors;
    for (const auto& [name, tensor] : read_safetensors(file)) {
        Shape shape = tensor.shape();
        shape[0] = is_per_frame(name) ? 3 : 2;
        Tensor all(tensor.dtype(), shape);
        for (int64_t i = 0; i < shape[0]; ++i) {
            std::copy_n(tensor.data(), tensor.bytes(),
                        all.data() + static_cast<size_t>(i) * tensor.bytes());
        }
        tensors.emplace(name, std::move(all));
    }
    write_safetensors(file, tensors);
    edit(folder, [&](json& document) {
        document["tensors"]["sha256"] = sha256_of_file(file);
        const json frame = document["source_frames"][0];
        document["source_frames"] = json::array({frame, frame, frame});
        for (size_t i = 0; i < 3; ++i) document["source_frames"][i]["features"] = i % 2;
        document["source_frames"][1]["opacity"] = 0.0;
    });
    const Avatar avatar = load(folder);
    EXPECT_EQ(avatar.source_frames(), 3);
    EXPECT_EQ(avatar.feature_entries(), 2);
    EXPECT_EQ(avatar.frame_of_entry(1), 1);
    EXPECT_EQ(avatar.features_of, (std::vector<int64_t>{0, 1, 0}));
    EXPECT_EQ(avatar.opacity, (std::vector<double>{1.0, 0.0, 1.0}));
    edit(folder, [](json& d) { d["source_frames"][1]["features"] = 0; });
    EXPECT_THAT(error_of([&] { (void)load(folder); }),
                HasSubstr("wanted 1 on the first axis, one entry per number under \"features\""));
}

class BadDocument : public testing::TestWithParam<Change> {};

TEST_P(BadDocument, IsRefusedWithThePath) {
    const Change& change = GetParam();
    const json document = changed(anna(), change);
    const std::string message =
        error_of([&] { (void)parse_avatar_document(document.dump(), "x/avatar.json"); });
    EXPECT_THAT(message, testing::StartsWith("x/avatar.json: "));
    EXPECT_THAT(message, HasSubstr(change.message));
}

INSTANTIATE_TEST_SUITE_P(
    All, BadDocument,
    testing::Values(
        Change{"/format", R"("newscaster-pack")", "format: found \"newscaster-pack\""},
        Change{"/schema_version", "3", "schema_version: found 3, wanted 1"},
        Change{"/name", nullptr, "name: missing"}, Change{"/colour", "1", "colour: unknown key"},
        Change{"/pack/avatar_key", R"("abc")", "pack.avatar_key: found"},
        Change{"/pack/name", "7", "pack.name: found 7"},
        Change{"/canvas/width", "1921", "canvas.width: found 1921, wanted an even"},
        Change{"/canvas/height", "0", "canvas.height: found 0"},
        Change{"/canvas/files", "[]", "canvas.files: found []"},
        Change{"/canvas/files", R"(["a.png", "b.png"])", "canvas.files: found"},
        Change{"/canvas/files/0", R"("../canvas.png")", "canvas.files[0]: found"},
        Change{"/source_frames", "[]", "source_frames: found []"},
        Change{"/source_frames/0/crop_to_canvas", "[[1, 0, 0]]", "source_frames[0].crop_to_canvas"},
        Change{"/source_frames/0/crop_to_canvas/1", "[1, 0]", "crop_to_canvas[1]: found [1,0]"},
        Change{"/source_frames/0/crop_to_canvas/1", "[2, 0, 0]", "an invertible map"},
        Change{"/source_frames/0/crop_to_canvas/1/2", "1e9", "crop_to_canvas[1][2]: found"},
        Change{"/source_frames/0/features", "1", "source_frames[0].features: found 1"},
        Change{"/source_frames/0/features", "-1", "source_frames[0].features: found -1"},
        Change{"/source_frames/0/opacity", "1.5", "source_frames[0].opacity: found 1.5"},
        Change{"/source_frames/0/time", "0", "source_frames[0].time: unknown key"},
        Change{"/mask", R"({"inset_px": 4})", "mask.feather_px: missing"},
        Change{"/mask", R"({"inset_px": -4, "feather_px": 1})", "mask.inset_px: found -4"},
        Change{"/tensors/file", R"("/tensors")", "tensors.file: found"},
        Change{"/tensors/sha256", nullptr, "tensors.sha256: missing"}));

TEST(DocumentProperty, WritingAndReadingGivesTheSameDocument) {
    std::mt19937 random(11);
    std::uniform_real_distribution<double> number(-1e5, 1e5);
    for (int i = 0; i < 50; ++i) {
        AvatarDocument document;
        document.name = "n\"\\\n\u00e9";
        document.title = "T";
        document.license = "L";
        document.pack_name = "P";
        document.avatar_key = std::string(64, 'a');
        document.width = 642;
        document.height = 360;
        document.canvas_files = {"canvas.png"};
        document.crop_to_canvas = {
            {number(random), 1.0, number(random), 2.0, number(random), number(random) * 1e-9}};
        if (i % 2 == 1) document.mask = {.inset_px = 1.25, .feather_px = 7.0, .linear = i % 4 == 1};
        if (i % 3 == 0) document.features_of = {0};
        if (i % 5 == 0) document.opacity = {0.25};
        document.tensors = {.file = "t.safetensors", .sha256 = std::string(64, '0')};
        const std::string text = avatar_document_text(document);
        const AvatarDocument read = parse_avatar_document(text, "x");
        EXPECT_EQ(avatar_document_text(read), text);
        EXPECT_EQ(read.name, document.name);
        EXPECT_EQ(read.crop_to_canvas, document.crop_to_canvas);
        EXPECT_EQ(read.features_of, document.features_of);
        EXPECT_EQ(read.opacity, document.opacity);
        ASSERT_EQ(read.mask.has_value(), document.mask.has_value());
        if (read.mask) {
            EXPECT_EQ(read.mask->linear, document.mask->linear);
        }
    }
}

class WriteAvatar : public testing::Test {
  protected:
    void write(const fs::path& folder, bool replace = false) const {
        AvatarDocument document =
            parse_avatar_document(read_text(source_path("avatars/anna/avatar.json")), "anna");
        document.width = 32;
        document.height = 16;
        write_avatar(folder, std::move(document), canvas_, tensors_, replace);
    }

    RgbImage canvas_{32, 16, std::vector<uint8_t>(32 * 16 * 3, 77)};
    TensorMap tensors_ = read_safetensors(source_path("avatars/anna/tensors.safetensors"));
    fs::path folder_ = scratch("written");
};

TEST_F(WriteAvatar, LoadsAgainWithEveryValue) {
    const fs::path target = folder_ / "a";
    write(target);
    const Avatar avatar = load(target);
    EXPECT_EQ(avatar.width, 32);
    EXPECT_EQ(media::read_image(avatar.canvas_files.at(0)).pixels, canvas_.pixels);
    for (const auto& [name, shape] : required_tensors(studio(), 1, 1)) {
        EXPECT_EQ(avatar.tensors.at(name).shape(), shape) << name;
    }
    const auto wanted = tensors_.at("kp_source").to_f32();
    const auto found = avatar.tensors.at("kp_source").as<float>();
    EXPECT_TRUE(std::equal(found.begin(), found.end(), wanted.as<float>().begin()));
}

TEST_F(WriteAvatar, ReplacesAnAvatarOnlyAndOnlyWhenAsked) {
    const fs::path target = folder_ / "a";
    write(target);
    EXPECT_THAT(error_of([&] { write(target); }, ErrorCode::io), HasSubstr("exists already"));
    EXPECT_NO_THROW(write(target, true));
    const fs::path precious = folder_ / "precious";
    fs::create_directory(precious);
    write_text_atomic(precious / "thesis.txt", "words");
    EXPECT_THAT(error_of([&] { write(precious, true); }, ErrorCode::io), HasSubstr("is no avatar"));
    EXPECT_TRUE(fs::exists(precious / "thesis.txt"));
    EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 2);
}

TEST(DocumentProperty, RandomBytesOnlyEverThrowBadPack) {
    const std::string valid = read_text(source_path("avatars/anna/avatar.json"));
    std::mt19937 random(2);
    int refused = 0;
    for (int i = 0; i < 4000; ++i) {
        const std::string text = i % 2 == 0 ? testing_support::mutate(valid, random)
                                            : testing_support::mutate_numbers(valid, random);
        try {
            (void)parse_avatar_document(text, "x");
        } catch (const Error& error) {
            ASSERT_EQ(error.code(), ErrorCode::bad_pack) << error.what();
            ++refused;
        }
    }
    EXPECT_GT(refused, 1000);
}

TEST(DocumentProperty, EveryTruncationIsRefused) {
    std::string valid = read_text(source_path("avatars/anna/avatar.json"));
    while (valid.back() != '}') valid.pop_back();
    for (size_t length = 0; length < valid.size(); ++length) {
        EXPECT_NE(error_of([&] { (void)parse_avatar_document(valid.substr(0, length), "x"); }), "");
    }
}

}  // namespace
}  // namespace newscaster::avatar
