#include "device/graph_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <mutex>
#include <utility>

#include "device/device.h"
#include "device/onnx_builder_test_util.h"

namespace newscaster::device {
namespace {

using test::OnnxBuilder;
using test::TempFolder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Collects warnings.
class Warnings {
  public:
    Log log() {
        return Log([this](LogLevel level, std::string_view line) {
            const std::lock_guard lock(mutex_);
            if (level == LogLevel::warning) lines_.emplace_back(line);
        });
    }
    // Those since the last call.
    std::vector<std::string> take() {
        const std::lock_guard lock(mutex_);
        return std::exchange(lines_, {});
    }

  private:
    std::mutex mutex_;
    std::vector<std::string> lines_;
};

std::vector<std::byte> bytes_of(std::string_view text) {
    const auto view = std::as_bytes(std::span(text.data(), text.size()));
    return {view.begin(), view.end()};
}

class GraphCacheTest : public ::testing::Test {
  protected:
    // Rewrites a file through `change`.
    static void alter(const std::filesystem::path& file,
                      const std::function<void(std::vector<std::byte>&)>& change) {
        auto bytes = read_file(file);
        change(bytes);
        std::ofstream out(file, std::ios::binary | std::ios::trunc);
        out.write(reinterpret_cast<const char*>(bytes.data()),
                  static_cast<std::streamsize>(bytes.size()));
    }

    TempFolder folder_;
    Warnings warnings_;
};

TEST_F(GraphCacheTest, ReturnsExactlyWhatWasStored) {
    const GraphCache cache(folder_.path() / "new" / "folder", warnings_.log());
    const nlohmann::json description = {{"content_sha256", "abc"}, {"precision", "f32"}};
    EXPECT_EQ(cache.find(description), std::nullopt);
    const auto payload = bytes_of(std::string("pay\0load", 8));
    cache.store(description, payload);
    EXPECT_EQ(cache.find(description), payload);
    EXPECT_EQ(cache.find({{"content_sha256", "abc"}, {"precision", "bf16"}}), std::nullopt);
    cache.store(description, {});
    EXPECT_EQ(cache.find(description), std::vector<std::byte>{});
    auto beside = cache.file_of(description);
    const auto metadata = nlohmann::json::parse(read_text(beside.replace_extension(".json")));
    EXPECT_EQ(metadata.at("description"), description);
    EXPECT_THAT(warnings_.take(), IsEmpty());
}

TEST_F(GraphCacheTest, WithoutAFolderNothingIsKept) {
    const GraphCache cache({}, warnings_.log());
    EXPECT_FALSE(cache.enabled());
    cache.store({{"a", 1}}, bytes_of("x"));
    EXPECT_EQ(cache.find({{"a", 1}}), std::nullopt);
    EXPECT_THAT(warnings_.take(), IsEmpty());
}

// Every truncation and every flipped byte of an entry is noticed.
TEST_F(GraphCacheTest, NoDamagePasses) {
    const GraphCache cache(folder_.path(), warnings_.log());
    const nlohmann::json description = {{"precision", "f32"}};
    cache.store(description, bytes_of("the payload"));
    const auto file = cache.file_of(description);
    const auto sound = read_file(file);
    for (size_t size = 0; size < sound.size(); ++size) {
        alter(file, [&](auto& bytes) { bytes.assign(sound.begin(), sound.begin() + size); });
        ASSERT_EQ(cache.find(description), std::nullopt) << "truncated to " << size;
        ASSERT_EQ(warnings_.take().size(), 1U);
    }
    for (size_t at = 0; at < sound.size(); ++at) {
        alter(file, [&](auto& bytes) {
            bytes = sound;
            bytes[at] ^= std::byte{0x10};
        });
        ASSERT_EQ(cache.find(description), std::nullopt) << "byte " << at;
        ASSERT_EQ(warnings_.take().size(), 1U);
    }
    alter(file, [&](auto& bytes) {
        bytes = sound;
        bytes.push_back(std::byte{0});
    });
    EXPECT_EQ(cache.find(description), std::nullopt);
}

TEST_F(GraphCacheTest, AnotherEntrysFileIsStale) {
    const GraphCache cache(folder_.path(), warnings_.log());
    cache.store({{"precision", "f32"}}, bytes_of("one"));
    cache.store({{"precision", "bf16"}}, bytes_of("two"));
    std::filesystem::copy_file(cache.file_of({{"precision", "f32"}}),
                               cache.file_of({{"precision", "bf16"}}),
                               std::filesystem::copy_options::overwrite_existing);
    EXPECT_EQ(cache.find({{"precision", "bf16"}}), std::nullopt);
    EXPECT_THAT(warnings_.take(), ElementsAre(HasSubstr("made for something else")));
}

// The cache inside the provider, with a graph that holds our own operator.
class ProviderCacheTest : public GraphCacheTest {
  protected:
    ProviderCacheTest() {
        model_ = OnnxBuilder(20)
                     .input("volume", {1, 4, 3, 5, 6})
                     .input("grid", {1, 2, 4, 4, 3})
                     .node("GridSample", {"volume", "grid"}, {"warped"},
                           {{"padding_mode", std::string("border")}, {"align_corners", int64_t{1}}})
                     .node("Relu", {"warped"}, {"out"})
                     .output("out", {1, 4, 2, 4, 4})
                     .save(folder_.path() / "model.onnx");
    }

    // Loads with this cache folder and returns the graph's answer to a fixed question.
    std::vector<float> answer(const std::filesystem::path& cache_dir, int threads = 1) {
        DeviceOptions options;
        options.threads = threads;
        options.cache_dir = cache_dir;
        options.log = warnings_.log();
        const auto device = open_device("cpu", options);
        const auto graph = device->load(model_, sha256_of_file(model_), {});
        const auto session = graph->make_session();
        for (const auto& info : graph->inputs()) {
            const auto buffer = device->allocate(info, Location::device);
            float i = 0.0F;
            for (auto& value : buffer->host_f32()) value = std::sin(i += 0.7F);
            session->bind(info.name, buffer);
        }
        const auto stream = device->make_stream();
        session->run(*stream);
        const auto values = session->buffer("out")->host_f32();
        return {values.begin(), values.end()};
    }

    [[nodiscard]] static std::vector<std::filesystem::path> entries(
        const std::filesystem::path& folder) {
        std::vector<std::filesystem::path> files;
        if (!std::filesystem::exists(folder)) return files;
        for (const auto& entry : std::filesystem::directory_iterator(folder)) {
            if (entry.path().extension() == ".graph") files.push_back(entry.path());
        }
        return files;
    }

    std::filesystem::path model_;
};

TEST_F(ProviderCacheTest, ImportedGraphAnswersTheSame) {
    const auto cache = folder_.path() / "cache";
    const auto without = answer({});
    ASSERT_TRUE(std::ranges::any_of(without, [](float v) { return v > 0.1F; }));
    EXPECT_EQ(answer(cache), without);
    ASSERT_EQ(entries(cache).size(), 1U);
    const auto written = std::filesystem::last_write_time(entries(cache)[0]);
    EXPECT_EQ(answer(cache), without);
    EXPECT_EQ(std::filesystem::last_write_time(entries(cache)[0]), written) << "was not reused";
    EXPECT_EQ(answer(cache, 2), without);
    EXPECT_EQ(entries(cache).size(), 2U) << "another thread count is another entry";
    EXPECT_THAT(warnings_.take(), IsEmpty());
}

TEST_F(ProviderCacheTest, DamageIsLoggedAndRepaired) {
    const auto cache = folder_.path() / "cache";
    const auto sound = answer(cache);
    const auto file = entries(cache).at(0);
    const std::vector<std::function<void(std::vector<std::byte>&)>> damages{
        [](auto& bytes) { bytes.resize(bytes.size() / 2); },
        [](auto& bytes) { bytes[bytes.size() - 20] ^= std::byte{1}; },
        [](auto& bytes) { bytes = bytes_of("something else entirely"); },
        [](auto& bytes) { bytes.clear(); }};
    for (const auto& damage : damages) {
        alter(file, damage);
        EXPECT_EQ(answer(cache), sound);
        EXPECT_THAT(warnings_.take(), ElementsAre(HasSubstr(file.string())));
        EXPECT_EQ(answer(cache), sound);
        EXPECT_THAT(warnings_.take(), IsEmpty()) << "was not repaired";
    }
}

// A payload that passes every check of ours but that OpenVINO cannot import.
TEST_F(ProviderCacheTest, UnusablePayloadIsCompiledAgain) {
    const auto cache = folder_.path() / "cache";
    const auto sound = answer(cache);
    const auto file = entries(cache).at(0);
    auto metadata_file = file;
    const auto metadata =
        nlohmann::json::parse(read_text(metadata_file.replace_extension(".json")));
    GraphCache(cache, {}).store(metadata.at("description"), bytes_of("no compiled graph at all"));
    EXPECT_EQ(answer(cache), sound);
    EXPECT_THAT(warnings_.take(), ElementsAre(HasSubstr("cannot be imported")));
    EXPECT_EQ(answer(cache), sound);
    EXPECT_THAT(warnings_.take(), IsEmpty());
}

TEST_F(ProviderCacheTest, UnwritableFolderOnlyCostsTime) {
    const auto blocked = folder_.path() / "blocked";
    write_text_atomic(blocked, "a file where the folder should be");
    const auto sound = answer({});
    EXPECT_EQ(answer(blocked / "cache"), sound);
    EXPECT_THAT(warnings_.take(), ElementsAre(HasSubstr("going on without")));
}

}  // namespace
}  // namespace newscaster::device
