#include "numbers.h"

#include <fmt/format.h>

#include <charconv>

#include "newscaster/error.h"

namespace newscaster::cli {

size_t parse_numbers(const char* option, const std::string& text, size_t least,
                     std::span<double> values) {
    size_t count = 0;
    const char* place = text.data();
    const char* const end = text.data() + text.size();
    bool sound = true;
    while (sound && count < values.size()) {
        const auto [rest, fault] = std::from_chars(place, end, values[count]);
        sound = fault == std::errc() && (rest == end || *rest == ',');
        place = rest;
        ++count;
        if (!sound || place == end) break;
        ++place;  // the comma
    }
    if (sound && place == end && count >= least && text.back() != ',') return count;
    const std::string wanted = least == values.size()
                                   ? fmt::format("{}", least)
                                   : fmt::format("{} or {}", least, values.size());
    throw Error(ErrorCode::bad_input,
                fmt::format("{}: found \"{}\", wanted {} numbers with commas between them", option,
                            text, wanted));
}

}  // namespace newscaster::cli
