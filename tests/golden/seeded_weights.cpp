#include "seeded_weights.h"

#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "core/file.h"
#include "core/json_reader.h"
#include "core/tensor.h"

namespace newscaster::test {

namespace fs = std::filesystem;

namespace {

using Block = std::array<uint64_t, 4>;

constexpr int kRounds = 10;
constexpr std::array<uint64_t, 2> kMultipliers{0xD2E7470EE14C6C93, 0xCA5A826395121157};
constexpr std::array<uint64_t, 2> kKeySteps{0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B};
constexpr float kUnit = 1.0F / (1U << 23U);

std::pair<uint64_t, uint64_t> wide_product(uint64_t a, uint64_t b) {
    __extension__ using Wide = unsigned __int128;
    const Wide product = static_cast<Wide>(a) * b;
    return {static_cast<uint64_t>(product >> 64U), static_cast<uint64_t>(product)};
}

Block philox_block(uint64_t counter, std::array<uint64_t, 2> key) {
    Block block{counter, 0, 0, 0};
    for (int round = 0; round < kRounds; ++round) {
        const auto [high0, low0] = wide_product(kMultipliers[0], block[0]);
        const auto [high1, low1] = wide_product(kMultipliers[1], block[2]);
        block = {high1 ^ block[1] ^ key[0], low1, high0 ^ block[3] ^ key[1], low0};
        key[0] += kKeySteps[0];
        key[1] += kKeySteps[1];
    }
    return block;
}

// Bytes 8 * index ... of the digest, little-endian.
uint64_t key_word(const std::string& hex, size_t index) {
    uint64_t word = 0;
    for (size_t byte = 0; byte < 8; ++byte) {
        const std::string digits = hex.substr((index * 8 + byte) * 2, 2);
        word |= static_cast<uint64_t>(std::stoul(digits, nullptr, 16)) << (8 * byte);
    }
    return word;
}

// CRC-32 of ISO 3309, as zlib's.
uint32_t crc32(const std::string& text) {
    constexpr uint32_t kPolynomial = 0xEDB88320;
    uint32_t crc = 0xFFFFFFFF;
    for (const char letter : text) {
        crc ^= static_cast<uint8_t>(letter);
        for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1U) ^ ((crc & 1U) != 0 ? kPolynomial : 0);
    }
    return ~crc;
}

// One tensor of weights.json.
std::vector<float> filled_tensor(const JsonReader& recipe, uint64_t seed) {
    const Shape shape = recipe.at("shape").shape();
    const auto count = static_cast<size_t>(element_count(shape));
    const auto rows = static_cast<size_t>(shape.at(0));
    const size_t columns = count / rows;
    const auto offset =
        static_cast<size_t>(recipe.at("offset").integer(0, std::numeric_limits<int32_t>::max()));
    const auto uniform = seeded_uniform(seed, recipe.at("source").text(), offset + count);
    const std::span<const float> source = std::span(uniform).subspan(offset);
    const JsonReader scales = recipe.at("scale");
    const bool transposed = recipe.at("transposed").boolean();
    std::vector<float> values(count);
    for (size_t row = 0; row < rows; ++row) {
        const size_t entry = scales.array_size() == 1 ? 0 : row;
        const auto scale = static_cast<float>(scales.at(entry).number(-1e6, 1e6));
        for (size_t column = 0; column < columns; ++column) {
            const size_t place = transposed ? column * rows + row : row * columns + column;
            values[row * columns + column] = scale * source[place];
        }
    }
    return values;
}

}  // namespace

std::vector<uint32_t> philox_words(uint64_t key0, uint64_t key1, size_t count) {
    std::vector<uint32_t> words;
    words.reserve(count + 8);
    for (uint64_t counter = 1; words.size() < count; ++counter) {
        for (const uint64_t value : philox_block(counter, {key0, key1})) {
            words.push_back(static_cast<uint32_t>(value));
            words.push_back(static_cast<uint32_t>(value >> 32U));
        }
    }
    words.resize(count);
    return words;
}

std::vector<float> seeded_uniform(uint64_t seed, const std::string& name, size_t count) {
    const std::string digest = sha256_hex(std::to_string(seed) + "/" + name);
    const auto words = philox_words(key_word(digest, 0), key_word(digest, 1), count);
    std::vector<float> values;
    values.reserve(count);
    for (const uint32_t word : words) {
        values.push_back(static_cast<float>(word >> 8U) * kUnit - 1.0F);
    }
    return values;
}

std::vector<float> formula_input(const std::string& name, size_t count, double low, double high) {
    constexpr uint32_t kMultiplier = 2654435769;
    const uint32_t crc = crc32(name);
    std::vector<float> values;
    values.reserve(count);
    for (size_t i = 1; i <= count; ++i) {
        const uint32_t word = static_cast<uint32_t>(i) * kMultiplier + crc;
        values.push_back(static_cast<float>(low + (high - low) * (word >> 8U) / 0x1p24));
    }
    return values;
}

void fill_skeleton(const fs::path& skeleton, const fs::path& target) {
    AtomicFolder folder(target, AtomicFolder::Existing::replace);
    const fs::path recipes = skeleton / "weights.json";
    for (const auto& entry : fs::directory_iterator(skeleton)) {
        if (entry.path() == recipes) continue;
        fs::copy(entry.path(), folder.temporary() / entry.path().filename());
    }
    const auto document =
        JsonReader::parse(read_text(recipes), recipes.string(), ErrorCode::bad_input);
    const JsonReader root(document, recipes.string(), ErrorCode::bad_input);
    const auto seed =
        static_cast<uint64_t>(root.at("seed").integer(0, std::numeric_limits<int64_t>::max()));
    const JsonReader graphs = root.at("graphs");
    for (const auto& role : graphs.keys()) {
        std::vector<float> weights;
        const JsonReader tensors = graphs.at(role);
        for (size_t i = 0; i < tensors.array_size(); ++i) {
            const auto values = filled_tensor(tensors.at(i), seed);
            weights.insert(weights.end(), values.begin(), values.end());
        }
        write_file_atomic(folder.temporary() / (role + ".weights"),
                          std::as_bytes(std::span(weights)));
    }
    folder.commit();
}

}  // namespace newscaster::test
