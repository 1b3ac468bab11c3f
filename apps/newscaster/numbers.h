// Lists of numbers on the command line.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace newscaster::cli {

// "a,b,c" as numbers: at least `least`, at most as many as there is room for. The count. Throws
// Error(bad_input) naming the option.
size_t parse_numbers(const char* option, const std::string& text, size_t least,
                     std::span<double> values);

}  // namespace newscaster::cli
