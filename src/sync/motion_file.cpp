#include "sync/motion_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "core/file.h"
#include "core/json_reader.h"

namespace newscaster::sync {

namespace {

namespace fs = std::filesystem;

constexpr uint64_t kLargestFile = 1ULL << 30U;
constexpr size_t kCurves = 6;
constexpr std::array<const char*, kCurves> kNames{
    "jawOpen",          "mouthClose",       "mouthLowerDownLeft", "mouthLowerDownRight",
    "mouthUpperUpLeft", "mouthUpperUpRight"};

double opening(const std::array<double, kCurves>& curves) {
    return std::max(0.0, curves[0] - curves[1]) +
           0.15 * (curves[2] + curves[3] + curves[4] + curves[5]);
}

[[noreturn]] void fail(const fs::path& file, const std::string& reason) {
    throw Error(ErrorCode::bad_input, fmt::format("{}: {}", file.string(), reason));
}

std::string lower(std::string text) {
    std::ranges::transform(text, text.begin(), [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    return text;
}

// Column of each curve. JSON spells them as ARKit does, CSV with a capital first letter.
std::array<size_t, kCurves> find_columns(const fs::path& file,
                                         const std::vector<std::string>& names) {
    std::array<size_t, kCurves> columns{};
    for (size_t i = 0; i < kCurves; ++i) {
        const auto found = std::ranges::find_if(
            names, [&](const std::string& name) { return lower(name) == lower(kNames.at(i)); });
        if (found == names.end()) {
            fail(file, fmt::format("found no curve {}, wanted the motion of a pack with ARKit "
                                   "blendshapes",
                                   kNames.at(i)));
        }
        columns.at(i) = static_cast<size_t>(found - names.begin());
    }
    return columns;
}

MouthTrack read_json(const fs::path& file) {
    const auto document =
        JsonReader::parse(read_text(file, kLargestFile), file.string(), ErrorCode::bad_input);
    const JsonReader root(document, file.string(), ErrorCode::bad_input);
    root.expect_keys({"fps", "names", "frames"});
    MouthTrack track;
    track.fps = root.at("fps").number(1.0, 1000.0);
    track.zero_is_closed = true;
    std::vector<std::string> names;
    const JsonReader listed = root.at("names");
    for (size_t i = 0; i < listed.array_size(); ++i) names.push_back(listed.at(i).text());
    const auto columns = find_columns(file, names);
    constexpr double kMost = std::numeric_limits<float>::max();
    const JsonReader frames = root.at("frames");
    for (size_t i = 0; i < frames.array_size(); ++i) {
        const JsonReader row = frames.at(i);
        if (row.array_size() != names.size()) {
            row.fail(fmt::format("{} numbers", names.size()));
        }
        std::array<double, kCurves> curves{};
        for (size_t k = 0; k < kCurves; ++k) {
            curves.at(k) = row.at(columns.at(k)).number(-kMost, kMost);
        }
        track.opening.push_back(opening(curves));
    }
    return track;
}

std::vector<std::string> split(const std::string& line) {
    std::vector<std::string> cells;
    std::istringstream stream(line);
    for (std::string cell; std::getline(stream, cell, ',');) {
        if (!cell.empty() && cell.back() == '\r') cell.pop_back();
        cells.push_back(cell);
    }
    return cells;
}

double number_of(const fs::path& file, size_t line, const std::string& cell) {
    std::istringstream stream(cell);
    stream.imbue(std::locale::classic());
    double value = 0.0;
    if (!(stream >> value) || !stream.eof() || !std::isfinite(value)) {
        fail(file, fmt::format("line {}: found \"{}\", wanted a number", line, cell));
    }
    return value;
}

MouthTrack read_csv(const fs::path& file, double fps) {
    std::istringstream text(read_text(file, kLargestFile));
    MouthTrack track{.fps = fps, .opening = {}, .zero_is_closed = true};
    std::string line;
    if (!std::getline(text, line)) fail(file, "found nothing, wanted a line of column names");
    const auto names = split(line);
    const auto columns = find_columns(file, names);
    for (size_t number = 2; std::getline(text, line); ++number) {
        const auto cells = split(line);
        if (cells.size() != names.size()) {
            fail(file, fmt::format("line {}: found {} cells, wanted {}", number, cells.size(),
                                   names.size()));
        }
        std::array<double, kCurves> curves{};
        for (size_t k = 0; k < kCurves; ++k) {
            curves.at(k) = number_of(file, number, cells[columns.at(k)]);
        }
        track.opening.push_back(opening(curves));
    }
    return track;
}

}  // namespace

bool is_motion_file(const fs::path& file) {
    const std::string extension = lower(file.extension().string());
    return extension == ".json" || extension == ".csv" || extension == ".npz";
}

MouthTrack read_motion_file(const fs::path& file, double csv_fps) {
    const std::string extension = lower(file.extension().string());
    if (extension == ".npz") fail(file, "found .npz, wanted motion as .json or .csv");
    MouthTrack track = extension == ".csv" ? read_csv(file, csv_fps) : read_json(file);
    if (track.opening.empty()) fail(file, "found no frames");
    return track;
}

}  // namespace newscaster::sync
