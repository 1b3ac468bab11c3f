#include <random>

#include "core/file.h"
#include "pack/manifest.h"
#include "pack/test_support.h"

namespace newscaster::pack {
namespace {

using testing_support::mutate;
using testing_support::mutate_numbers;

// True when the text was accepted. Anything thrown but newscaster::Error(bad_pack) fails the test.
bool accepted(const std::string& text) {
    try {
        (void)parse_manifest(text, "x");
        return true;
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::bad_pack) << error.what();
        return false;
    }
}

TEST(ManifestProperty, RandomBytesOnlyEverThrowBadPack) {
    const std::string valid = read_text(testing_support::source_path("packs/studio/pack.json"));
    ASSERT_TRUE(accepted(valid));
    std::mt19937 random(1);
    int refused = 0;
    for (int i = 0; i < 1500; ++i) refused += accepted(mutate(valid, random)) ? 0 : 1;
    EXPECT_GT(refused, 1000);
    for (int i = 0; i < 1500; ++i) (void)accepted(mutate_numbers(valid, random));
}

TEST(ManifestProperty, EveryTruncationIsRefused) {
    std::string valid = read_text(testing_support::source_path("packs/studio/pack.json"));
    while (valid.back() != '}') valid.pop_back();
    for (size_t length = 0; length < valid.size(); length += 7) {
        EXPECT_FALSE(accepted(valid.substr(0, length))) << length;
    }
}

TEST(ManifestProperty, DeepNestingAndHugeNumbersAreRefused) {
    EXPECT_FALSE(accepted(std::string(200'000, '[')));
    EXPECT_FALSE(accepted(std::string(200'000, '[') + std::string(200'000, ']')));
    EXPECT_FALSE(
        accepted("{\"format\": " + std::string(100'000, '[') + std::string(100'000, ']') + "}"));
    EXPECT_FALSE(accepted(R"({"format": 1e999})"));
    EXPECT_FALSE(accepted(R"({"format": "newscaster-pack", "schema_version": 1e30})"));
    EXPECT_FALSE(accepted("{\"format\": \"\xff\xfe\"}"));
}

}  // namespace
}  // namespace newscaster::pack
