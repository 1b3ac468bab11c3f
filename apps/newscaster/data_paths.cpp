#include "data_paths.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <system_error>
#include <vector>

#include "newscaster/error.h"

namespace newscaster::cli {

namespace fs = std::filesystem;

namespace {

constexpr int kLevelsAboveProgram = 4;

std::vector<fs::path> roots() {
    std::vector<fs::path> folders;
    if (const char* own = std::getenv("NEWSCASTER_DATA"); own != nullptr && *own != '\0') {
        folders.emplace_back(own);
    }
    folders.emplace_back(".");
    std::error_code error;
    fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
    for (int level = 0; !error && level < kLevelsAboveProgram; ++level) {
        folders.push_back(folder / "share/newscaster");
        folders.push_back(folder);
        folder = folder.parent_path();
    }
    return folders;
}

std::string marker(const std::string& kind) {
    return kind == "packs" ? "pack.json" : "avatar.json";
}

std::set<std::string> names_in(const fs::path& folder, const std::string& file) {
    std::set<std::string> names;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error)) {
        std::error_code ignored;
        if (fs::exists(entry.path() / file, ignored))
            names.insert(entry.path().filename().string());
    }
    return names;
}

}  // namespace

fs::path find_data(const std::string& kind, const std::string& wanted) {
    std::error_code ignored;
    const std::string file = marker(kind);
    if (fs::exists(fs::path(wanted) / file, ignored)) return wanted;

    const bool is_path = wanted.find('/') != std::string::npos || wanted.empty();
    std::set<std::string> known;
    for (const auto& root : roots()) {
        fs::path candidate = root / kind / wanted;
        if (!is_path && fs::exists(candidate / file, ignored)) return candidate;
        known.merge(names_in(root / kind, file));
    }
    const std::string single = kind == "packs" ? "pack" : "avatar";
    if (is_path || fs::exists(wanted, ignored)) {
        throw Error(ErrorCode::bad_pack,
                    fmt::format("{}: not a {} folder, {} is missing", wanted, single, file));
    }
    throw Error(
        ErrorCode::bad_pack,
        fmt::format("{} \"{}\" not found; bundled: {}; or give a folder with {}", single, wanted,
                    known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", ")), file));
}

fs::path find_detectors() {
    std::error_code ignored;
    for (const auto& root : roots()) {
        fs::path candidate = root / "detectors";
        if (fs::is_directory(candidate, ignored)) return candidate;
    }
    throw Error(ErrorCode::bad_pack,
                "the face detectors are not installed: run scripts/fetch_detectors.sh, name their "
                "folder with --detectors, or say where the face is with --crop");
}

fs::path find_speech() {
    std::error_code ignored;
    for (const auto& root : roots()) {
        fs::path candidate = root / "examples/speech.wav";
        if (fs::is_regular_file(candidate, ignored)) return candidate;
    }
    throw Error(ErrorCode::io,
                "examples/speech.wav is not installed: name a recording with --audio");
}

}  // namespace newscaster::cli
