#include "pack/pack.h"

#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "core/file.h"
#include "pack/test_support.h"

namespace newscaster::pack {
namespace {

namespace fs = std::filesystem;
using device::Precision;
using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing_support::error_of;
using testing_support::scratch;
using testing_support::source_path;

class PackTest : public testing::Test {
  protected:
    // A private copy of the default pack, to be damaged.
    fs::path copy_of_studio() {
        fs::path folder = scratch("pack");
        fs::copy(source_path("packs/studio"), folder,
                 fs::copy_options::recursive | fs::copy_options::overwrite_existing);
        return folder;
    }

    static void edit(const fs::path& folder, const std::function<void(json&)>& change) {
        json document = json::parse(read_text(folder / "pack.json"));
        change(document);
        write_text_atomic(folder / "pack.json", document.dump());
    }

    static void flip_byte(const fs::path& file, int64_t offset) {
        std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
        stream.seekg(offset);
        const auto value = static_cast<char>(stream.get() ^ 1);
        stream.seekp(offset);
        stream.put(value);
    }

    device::Device& cpu() {
        if (!device_) device_ = device::open_device("cpu", {});
        return *device_;
    }

  private:
    std::unique_ptr<device::Device> device_;
};

TEST_F(PackTest, TheDefaultPackIsSound) {
    const Pack pack = Pack::open(source_path("packs/studio"));
    EXPECT_THAT(pack.verify(cpu()), testing::IsEmpty());
    EXPECT_EQ(pack.constant("expression_basis").shape(), (Shape{52, 48, 3}));
    EXPECT_EQ(pack.avatar_key(), avatar_key(pack.manifest()));
    EXPECT_THAT(error_of([&] { (void)pack.constant("nothing"); }), HasSubstr("'nothing'"));
}

TEST_F(PackTest, VerifyNamesEachFault) {
    const fs::path folder = copy_of_studio();
    edit(folder, [&](json& document) {
        // A sound file whose signature is not what the manifest says.
        document["graphs"]["warp"]["inputs"]["extra"] = {{"dtype", "f32"}, {"shape", {1}}};
        document["graphs"]["appearance_extractor"]["outputs"].erase("f256");
    });
    const Pack pack = Pack::open(folder);
    flip_byte(folder / "decoder.onnx", 1000);
    flip_byte(folder / "constants.safetensors", 20'000);
    fs::remove(folder / "motion_generator.onnx");
    const auto faults = pack.verify(cpu());
    EXPECT_THAT(faults,
                testing::UnorderedElementsAre(
                    HasSubstr("constants.safetensors: sha256 is"),
                    HasSubstr("graph decoder: sha256 is"), HasSubstr("graph motion_generator: "),
                    HasSubstr("graph warp: input 'extra' of the manifest is missing"),
                    HasSubstr("output 'f256' is not in the manifest")));
}

TEST_F(PackTest, VerifyLooksInsideAFileThatOnlyItsHashMakesSound) {
    const fs::path folder = copy_of_studio();
    write_text_atomic(folder / "decoder.onnx", "not a graph");
    edit(folder, [&](json& document) {
        document["graphs"]["decoder"]["sha256"] = sha256_of_file(folder / "decoder.onnx");
    });
    EXPECT_THAT(Pack::open(folder).verify(cpu()), ElementsAre(HasSubstr("decoder.onnx")));
}

TEST_F(PackTest, OpenRefusesWhatIsMissingOrDamaged) {
    const fs::path empty = scratch("pack");
    EXPECT_THAT(error_of([&] { (void)Pack::open(empty); }), HasSubstr("pack.json"));

    fs::path folder = copy_of_studio();
    fs::remove(folder / "warp.onnx");
    EXPECT_THAT(error_of([&] { (void)Pack::open(folder); }), HasSubstr("warp.onnx: the file is"));

    folder = copy_of_studio();
    flip_byte(folder / "constants.safetensors", 20'000);
    EXPECT_THAT(error_of([&] { (void)Pack::open(folder); }), HasSubstr("damaged or replaced"));
}

TEST_F(PackTest, OpenChecksTheShapesAndValuesOfConstants) {
    const fs::path folder = copy_of_studio();
    const fs::path file = folder / "constants.safetensors";
    const TensorMap sound = read_safetensors(file);
    const auto open_with = [&](const std::function<void(TensorMap&)>& change) {
        TensorMap constants;
        for (const auto& [name, tensor] : sound) constants.emplace(name, tensor.clone());
        change(constants);
        write_safetensors(file, constants);
        edit(folder, [&](json& d) { d["constants"]["sha256"] = sha256_of_file(file); });
        return error_of([&] { (void)Pack::open(folder); });
    };
    EXPECT_THAT(open_with([](auto& c) { c.erase("motion_mean"); }),
                HasSubstr("'motion_mean' is missing"));
    EXPECT_THAT(open_with([](auto& c) { c.at("motion_std") = Tensor(DType::f32, {58}); }),
                HasSubstr("'motion_std': found shape [58], wanted [59]"));
    EXPECT_THAT(open_with([](auto& c) { c.at("motion_std").template as<float>()[3] = 0.0F; }),
                HasSubstr("not positive and finite"));
    EXPECT_THAT(open_with([](auto& c) {
                    c.at("expression_basis").template as<float>()[0] =
                        std::numeric_limits<float>::quiet_NaN();
                }),
                HasSubstr("'expression_basis': found a value that is not finite"));
}

TEST_F(PackTest, LoadsAGraphAtTheManifestsShapes) {
    const Pack pack = Pack::open(source_path("packs/studio"));
    const auto graph = pack.load_graph(cpu(), role::kAudioEncoder, Precision::f32, 1);
    ASSERT_EQ(graph->inputs().size(), 1U);
    EXPECT_EQ(graph->inputs()[0].shape, (Shape{1, 15360}));
    const auto session = graph->make_session();
    const auto stream = cpu().make_stream();
    session->bind("wav", cpu().allocate(graph->inputs()[0], device::Location::host));
    session->run(*stream);
    EXPECT_EQ(session->buffer("feat")->info().shape, (Shape{1, 5, 80}));
}

TEST_F(PackTest, NeverLoadsADamagedGraph) {
    const fs::path folder = copy_of_studio();
    const Pack pack = Pack::open(folder);
    flip_byte(folder / "audio_encoder.onnx", 3'000'000);
    EXPECT_THAT(
        error_of([&] { (void)pack.load_graph(cpu(), role::kAudioEncoder, Precision::f32, 1); }),
        HasSubstr("audio_encoder.onnx: sha256 is"));
}

TEST_F(PackTest, RefusesAPrecisionThatTheGraphDoesNotAllow) {
    const Pack pack = Pack::open(source_path("packs/studio"));
    EXPECT_THAT(
        error_of([&] { (void)pack.load_graph(cpu(), role::kAudioEncoder, Precision::bf16, 1); },
                 ErrorCode::device_unavailable),
        HasSubstr("graph audio_encoder: found precision bf16, wanted one of: f32"));
}

TEST_F(PackTest, PicksTheBestPrecisionThatAllRolesAllow) {
    const Pack pack = Pack::open(source_path("packs/studio"));
    device::DeviceInfo info;
    info.precisions = {Precision::bf16, Precision::f32};
    EXPECT_EQ(pack.pick_precision(info, {role::kWarp, role::kDecoder}), Precision::bf16);
    EXPECT_EQ(pack.pick_precision(info, {role::kWarp, role::kAudioEncoder}), Precision::f32);
    info.precisions = {Precision::fp8};
    EXPECT_THAT(error_of([&] { (void)pack.pick_precision(info, {role::kWarp}); },
                         ErrorCode::device_unavailable),
                HasSubstr("fp8"));
}

TEST_F(PackTest, EveryPrecisionOfTheFormatIsOneOfTheProviderInterface) {
    for (const auto name : kPrecisionNames) {
        EXPECT_EQ(device::name_of(device::precision_from_name(name)), name);
    }
}

TEST_F(PackTest, UsesTheVariantOfAPrecisionWhereThereIsOne) {
    const fs::path folder = copy_of_studio();
    write_text_atomic(folder / "warp.int8.onnx", "not a graph");
    edit(folder, [&](json& document) {
        document["graphs"]["warp"]["variants"]["int8"] = {{"file", "warp.int8.onnx"},
                                                          {"sha256", std::string(64, '0')}};
    });
    const Pack pack = Pack::open(folder);
    EXPECT_THAT(error_of([&] { (void)pack.load_graph(cpu(), role::kWarp, Precision::int8, 1); }),
                HasSubstr("warp.int8.onnx: sha256 is"));
    device::DeviceInfo info;
    info.precisions = {Precision::int8, Precision::f32};
    EXPECT_EQ(pack.pick_precision(info, {role::kWarp}), Precision::int8);
}

}  // namespace
}  // namespace newscaster::pack
