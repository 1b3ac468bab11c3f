#include "sync/speech_track.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "newscaster/error.h"

namespace newscaster::sync {

namespace {

// How far the lips part for a phone, relative to the widest vowel. The order is that of phonetics:
// open before close vowels, vowels before consonants, lips together for bilabials.
constexpr auto kOpenings = std::to_array<std::pair<std::string_view, double>>(
    {{"sil", 0.0}, {"aa", 1.0},  {"ae", 0.85}, {"ao", 0.8},  {"ah", 0.65}, {"eh", 0.6},
     {"ow", 0.55}, {"ax", 0.45}, {"er", 0.45}, {"oe", 0.45}, {"ih", 0.4},  {"uh", 0.4},
     {"iy", 0.35}, {"uw", 0.25}, {"yy", 0.25}, {"p", 0.0},   {"b", 0.0},   {"m", 0.0},
     {"f", 0.12},  {"v", 0.12},  {"w", 0.12},  {"th", 0.3},  {"dh", 0.3},  {"t", 0.25},
     {"d", 0.25},  {"n", 0.25},  {"s", 0.25},  {"z", 0.25},  {"sh", 0.25}, {"zh", 0.25},
     {"ch", 0.25}, {"jh", 0.25}, {"k", 0.3},   {"g", 0.3},   {"ng", 0.3},  {"l", 0.35},
     {"r", 0.25},  {"y", 0.35},  {"hh", 0.4},  {"x", 0.4},   {"ay", 0.75}, {"aw", 0.75},
     {"ey", 0.5},  {"oy", 0.55}});

bool is_bilabial(std::string_view phone) {
    return phone == "p" || phone == "b" || phone == "m";
}

}  // namespace

PhoneReader::PhoneReader(const std::vector<std::string>& phones, const std::string& origin) {
    for (const char* wanted : {"sil", "p", "b", "m"}) {
        if (std::ranges::find(phones, wanted) != phones.end()) continue;
        throw Error(ErrorCode::bad_pack,
                    fmt::format("pack {}: found no phone \"{}\" in audio.phones, which sync needs",
                                origin, wanted));
    }
    for (const auto& phone : phones) {
        const auto known = std::ranges::find(kOpenings, std::string_view(phone),
                                             &std::pair<std::string_view, double>::first);
        if (known == kOpenings.end()) {
            throw Error(ErrorCode::bad_pack,
                        fmt::format("pack {}: audio.phones: found \"{}\", wanted sil or an ARPAbet "
                                    "phone in lower case",
                                    origin, phone));
        }
        if (phone == "sil") silence_ = openings_.size();
        openings_.push_back(known->second);
        bilabial_.push_back(is_bilabial(phone) ? 1.0 : 0.0);
    }
}

void PhoneReader::push(std::span<const float> logits) {
    const size_t columns = openings_.size();
    const bool finite = std::ranges::all_of(logits, [](float x) { return std::isfinite(x); });
    if (logits.size() % columns != 0 || !finite) {
        throw Error(ErrorCode::runtime,
                    fmt::format("phone logits: found {} values{}, wanted finite rows of {}",
                                logits.size(), finite ? "" : ", some not finite", columns));
    }
    std::vector<double> shares(columns);
    for (; !logits.empty(); logits = logits.subspan(columns)) {
        const auto row = logits.first(columns);
        const double largest = *std::ranges::max_element(row);
        double sum = 0.0;
        for (size_t i = 0; i < columns; ++i) {
            shares[i] = std::exp(static_cast<double>(row[i]) - largest);
            sum += shares[i];
        }
        double opening = 0.0;
        double bilabial = 0.0;
        for (size_t i = 0; i < columns; ++i) {
            opening += shares[i] / sum * openings_[i];
            bilabial += shares[i] / sum * bilabial_[i];
        }
        track_.opening.push_back(opening);
        track_.bilabial.push_back(bilabial);
        track_.silence.push_back(shares[silence_] / sum);
    }
}

}  // namespace newscaster::sync
