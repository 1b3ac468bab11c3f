// What the three exporters share: an atomic output file and the names of the motion dims.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/file.h"
#include "pack/manifest.h"

namespace newscaster::motion {

// Binary output that appears under its final name at commit(). Every call throws Error(io).
class ExportFile {
  public:
    explicit ExportFile(const std::filesystem::path& file);

    void append(std::string_view bytes);
    // Overwrites bytes at `offset`; later appends go to the end again.
    void patch(int64_t offset, std::string_view bytes);
    // Reads back `size` bytes at `offset`; shorter at the end of the file.
    [[nodiscard]] std::string read(int64_t offset, size_t size);
    [[nodiscard]] int64_t size() const { return size_; }
    void commit();

  private:
    void check(const char* action);

    AtomicFile target_;
    std::fstream stream_;
    int64_t size_ = 0;
};

// One name per dim: the blendshape channel, the span's name, or name_0, name_1, ...
[[nodiscard]] std::vector<std::string> dim_names(const pack::MotionSpec& spec);

// Throws Error(runtime) unless `frame` is `wanted_frame` and `motion` has `dims` finite values.
void require_row(int64_t frame, int64_t wanted_frame, std::span<const float> motion, int64_t dims);

}  // namespace newscaster::motion
