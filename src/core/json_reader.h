// Strict reading of JSON documents: every error names the document, the path inside it, the value
// found and the value wanted; keys that nobody asked for are errors too (a typo must not pass).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor.h"
#include "newscaster/error.h"
#include "newscaster/types.h"

namespace newscaster {

// A view of one JSON object or value with its path. Copyable; the document must outlive it.
class JsonReader {
  public:
    // Parses text; throws Error(code) on a syntax error, naming `origin` and the byte, and on
    // nesting deeper than 64 levels.
    // code: bad_pack for packs and avatars, bad_input for user options.
    static nlohmann::json parse(std::string_view text, const std::string& origin, ErrorCode code);

    JsonReader(const nlohmann::json& value, std::string origin, ErrorCode code,
               std::string path = "");

    // Throws unless this is an object whose keys are all in `known`.
    void expect_keys(std::initializer_list<std::string_view> known) const;

    [[nodiscard]] bool has(std::string_view key) const;
    [[nodiscard]] JsonReader at(std::string_view key) const;  // throws when missing
    [[nodiscard]] JsonReader at(size_t index) const;
    [[nodiscard]] size_t array_size() const;              // throws unless an array
    [[nodiscard]] std::vector<std::string> keys() const;  // throws unless an object

    // Values; each throws unless the type fits and the value lies in [low, high].
    [[nodiscard]] std::string text() const;  // non-empty
    [[nodiscard]] bool boolean() const;
    [[nodiscard]] int64_t integer(int64_t low, int64_t high) const;
    [[nodiscard]] double number(double low, double high) const;  // finite
    [[nodiscard]] Rational rational() const;  // "25/1", "30000/1001" or an integer, > 0
    [[nodiscard]] Shape shape() const;        // array of integers >= 1, rank 0..8
    [[nodiscard]] std::vector<int64_t> integers(int64_t low, int64_t high) const;

    // Throws Error(code): "<origin>: <path>: found <value>, wanted <wanted>".
    [[noreturn]] void fail(const std::string& wanted) const;

    [[nodiscard]] const std::string& path() const { return path_; }
    [[nodiscard]] const nlohmann::json& json() const { return *value_; }

  private:
    const nlohmann::json* value_;
    std::string origin_;
    ErrorCode code_;
    std::string path_;
};

}  // namespace newscaster
