// What the tests of the pack and avatar rooms share.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <ostream>
#include <random>
#include <string>

#include "core/error_test_util.h"

namespace newscaster::testing_support {

inline std::filesystem::path source_path(const std::string& relative) {
    return std::filesystem::path(NEWSCASTER_SOURCE_DIR) / relative;
}

// A fresh folder for one test.
inline std::filesystem::path scratch(const std::string& room) {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    auto folder = std::filesystem::path(::testing::TempDir()) / ("newscaster_" + room) /
                  (std::string(test->test_suite_name()) + "." + test->name());
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
    return folder;
}

// One edit of a JSON document and what the error about it must say.
struct Change {
    const char* pointer;  // JSON pointer of the value replaced
    const char* value;    // JSON text; nullptr: the key is removed
    const char* message;  // part of the error
};

inline std::ostream& operator<<(std::ostream& out, const Change& change) {
    return out << change.pointer << " = " << (change.value ? change.value : "(removed)");
}

inline nlohmann::json changed(nlohmann::json document, const Change& change) {
    const nlohmann::json::json_pointer pointer(change.pointer);
    if (change.value != nullptr) {
        document[pointer] = nlohmann::json::parse(change.value);
    } else {
        document.at(pointer.parent_pointer()).erase(pointer.back());
    }
    return document;
}

// One to four random byte edits: change, insert, delete, duplicate a stretch or cut the rest off.
inline std::string mutate(std::string text, std::mt19937& random) {
    const auto below = [&](size_t limit) {
        return std::uniform_int_distribution<size_t>(0, limit - 1)(random);
    };
    for (size_t edits = 1 + below(4); edits > 0 && !text.empty(); --edits) {
        const size_t at = below(text.size());
        switch (below(5)) {
            case 0:
                text[at] = static_cast<char>(below(256));
                break;
            case 1:
                text.insert(at, 1, static_cast<char>(below(256)));
                break;
            case 2:
                text.erase(at, 1 + below(20));
                break;
            case 3:
                text.insert(at, text.substr(below(text.size()), 1 + below(40)));
                break;
            default:
                text.resize(at);
                break;
        }
    }
    return text;
}

// Digits and punctuation swapped for others: stays valid JSON far more often than mutate().
inline std::string mutate_numbers(std::string text, std::mt19937& random) {
    std::uniform_int_distribution<size_t> place(0, text.size() - 1);
    std::uniform_int_distribution<int> digit('0', '9');
    for (int i = 0; i < 12; ++i) {
        char& c = text[place(random)];
        if (c >= '0' && c <= '9') c = static_cast<char>(digit(random));
    }
    return text;
}

}  // namespace newscaster::testing_support
