#include "motion/export_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "newscaster/error.h"

namespace newscaster::motion {

ExportFile::ExportFile(const std::filesystem::path& file)
    : target_(file),
      stream_(target_.temporary(),
              std::ios::binary | std::ios::in | std::ios::out | std::ios::trunc) {
    check("opened");
}

void ExportFile::check(const char* action) {
    if (!stream_) {
        throw Error(ErrorCode::io,
                    fmt::format("{}: cannot be {}", target_.path().string(), action));
    }
}

void ExportFile::append(std::string_view bytes) {
    stream_.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    check("written");
    size_ += static_cast<int64_t>(bytes.size());
}

void ExportFile::patch(int64_t offset, std::string_view bytes) {
    stream_.seekp(offset);
    stream_.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    stream_.seekp(0, std::ios::end);
    check("written");
}

std::string ExportFile::read(int64_t offset, size_t size) {
    std::string bytes(
        static_cast<size_t>(std::clamp<int64_t>(size_ - offset, 0, static_cast<int64_t>(size))),
        '\0');
    stream_.seekg(offset);
    stream_.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    check("read back");
    stream_.seekp(0, std::ios::end);
    return bytes;
}

void ExportFile::commit() {
    stream_.close();
    check("written");
    target_.commit();
}

std::vector<std::string> dim_names(const pack::MotionSpec& spec) {
    std::vector<std::string> names;
    for (const auto& span : spec.layout) {
        if (!span.channels.empty()) {
            names.insert(names.end(), span.channels.begin(), span.channels.end());
        } else if (span.size == 1) {
            names.push_back(span.name);
        } else {
            for (int64_t i = 0; i < span.size; ++i) {
                names.push_back(fmt::format("{}_{}", span.name, i));
            }
        }
    }
    return names;
}

void require_row(int64_t frame, int64_t wanted_frame, std::span<const float> motion, int64_t dims) {
    if (frame != wanted_frame) {
        throw Error(ErrorCode::runtime,
                    fmt::format("motion export: found frame {}, wanted {}", frame, wanted_frame));
    }
    if (static_cast<int64_t>(motion.size()) != dims) {
        throw Error(ErrorCode::runtime,
                    fmt::format("motion export: found {} values, wanted {}", motion.size(), dims));
    }
    if (!std::all_of(motion.begin(), motion.end(), [](float v) { return std::isfinite(v); })) {
        throw Error(ErrorCode::runtime,
                    fmt::format("motion export: frame {} has a value that is not finite", frame));
    }
}

}  // namespace newscaster::motion
