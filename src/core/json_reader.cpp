#include "core/json_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

namespace newscaster {

namespace {

constexpr size_t kShownValueLimit = 60;  // longer values are cut in messages
constexpr size_t kMaxRank = 8;
constexpr int kMaxDepth = 64;  // printing and destroying a value recurse; this bounds the stack

}  // namespace

nlohmann::json JsonReader::parse(std::string_view text, const std::string& origin, ErrorCode code) {
    const auto limit_depth = [&](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
        if (depth > kMaxDepth) {
            throw Error(code, fmt::format("{}: nested deeper than {} levels", origin, kMaxDepth));
        }
        return true;
    };
    try {
        return nlohmann::json::parse(text, limit_depth);
    } catch (const nlohmann::json::parse_error& error) {
        throw Error(code, fmt::format("{}: not valid JSON near byte {}", origin, error.byte));
    } catch (const nlohmann::json::exception&) {
        throw Error(code, fmt::format("{}: not valid JSON: a number is out of range", origin));
    }
}

JsonReader::JsonReader(const nlohmann::json& value, std::string origin, ErrorCode code,
                       std::string path)
    : value_(&value), origin_(std::move(origin)), code_(code), path_(std::move(path)) {}

void JsonReader::fail(const std::string& wanted) const {
    std::string shown = value_->dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
    if (shown.size() > kShownValueLimit) shown = shown.substr(0, kShownValueLimit) + "...";
    throw Error(code_, fmt::format("{}: {}: found {}, wanted {}", origin_,
                                   path_.empty() ? "document" : path_, shown, wanted));
}

void JsonReader::expect_keys(std::initializer_list<std::string_view> known) const {
    if (!value_->is_object()) fail("an object");
    for (const auto& item : value_->items()) {
        if (std::find(known.begin(), known.end(), item.key()) == known.end()) {
            throw Error(code_,
                        fmt::format("{}: {}{}{}: unknown key, known here: {}", origin_, path_,
                                    path_.empty() ? "" : ".", item.key(), fmt::join(known, ", ")));
        }
    }
}

bool JsonReader::has(std::string_view key) const {
    return value_->is_object() && value_->contains(key);
}

JsonReader JsonReader::at(std::string_view key) const {
    if (!value_->is_object()) fail("an object");
    const std::string path = path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
    const auto found = value_->find(key);
    if (found == value_->end()) {
        throw Error(code_, fmt::format("{}: {}: missing", origin_, path));
    }
    return {*found, origin_, code_, path};
}

JsonReader JsonReader::at(size_t index) const {
    if (!value_->is_array() || index >= value_->size()) fail("a longer array");
    return {(*value_)[index], origin_, code_, fmt::format("{}[{}]", path_, index)};
}

size_t JsonReader::array_size() const {
    if (!value_->is_array()) fail("an array");
    return value_->size();
}

std::vector<std::string> JsonReader::keys() const {
    if (!value_->is_object()) fail("an object");
    std::vector<std::string> names;
    for (const auto& item : value_->items()) names.push_back(item.key());
    return names;
}

std::string JsonReader::text() const {
    if (!value_->is_string() || value_->get_ref<const std::string&>().empty()) {
        fail("a non-empty string");
    }
    return value_->get<std::string>();
}

bool JsonReader::boolean() const {
    if (!value_->is_boolean()) fail("true or false");
    return value_->get<bool>();
}

int64_t JsonReader::integer(int64_t low, int64_t high) const {
    const bool fits_signed = !value_->is_number_unsigned() ||
                             value_->get<uint64_t>() <= static_cast<uint64_t>(INT64_MAX);
    if (!value_->is_number_integer() || !fits_signed || value_->get<int64_t>() < low ||
        value_->get<int64_t>() > high) {
        fail(fmt::format("an integer from {} to {}", low, high));
    }
    return value_->get<int64_t>();
}

double JsonReader::number(double low, double high) const {
    if (!value_->is_number() || !std::isfinite(value_->get<double>()) ||
        value_->get<double>() < low || value_->get<double>() > high) {
        fail(fmt::format("a number from {} to {}", low, high));
    }
    return value_->get<double>();
}

Rational JsonReader::rational() const {
    constexpr int64_t kLimit = 1'000'000;
    if (value_->is_number_integer()) return {integer(1, kLimit), 1};
    if (!value_->is_string()) fail("a rate such as \"25/1\"");
    const std::string raw = value_->get<std::string>();
    const char* end = raw.data() + raw.size();
    Rational rate;
    auto parsed = std::from_chars(raw.data(), end, rate.num);
    if (parsed.ec == std::errc() && parsed.ptr != end && *parsed.ptr == '/') {
        parsed = std::from_chars(parsed.ptr + 1, end, rate.den);
    }
    const bool in_range = rate.num > 0 && rate.den > 0 && rate.num <= kLimit && rate.den <= kLimit;
    if (parsed.ec != std::errc() || parsed.ptr != end || !in_range) {
        fail("a rate such as \"25/1\"");
    }
    return rate;
}

Shape JsonReader::shape() const {
    if (array_size() > kMaxRank) fail("at most 8 extents");
    return integers(1, int64_t{1} << 31U);
}

std::vector<int64_t> JsonReader::integers(int64_t low, int64_t high) const {
    std::vector<int64_t> values(array_size());
    for (size_t i = 0; i < values.size(); ++i) values[i] = at(i).integer(low, high);
    return values;
}

}  // namespace newscaster
