// The three motion formats behind MotionExporter::open; docs/motion.md describes them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "motion/export_file.h"
#include "motion/motion_export.h"

namespace newscaster::motion {

// Columns and units of a Live Link Face take: 52 ARKit coefficients, then head and eye angles in
// radians. Needs a blendshapes span; ARKit channels that the pack lacks are 0.
class CsvExporter final : public MotionExporter {
  public:
    CsvExporter(const std::filesystem::path& file, const pack::Manifest& manifest);
    void write(int64_t frame, std::span<const float> motion) override;
    void finish() override;

  private:
    [[nodiscard]] double channel(std::span<const float> motion, std::string_view name) const;
    [[nodiscard]] double angle_deg(std::span<const float> motion, pack::SpanKind kind) const;

    pack::MotionSpec spec_;
    Rational frame_rate_;
    ExportFile file_;
    std::vector<int64_t>
        column_dims_;  // motion dim of each ARKit column; -1 when the pack has none
    int64_t next_frame_ = 0;
};

// {"fps": 25, "names": [...], "frames": [[...], ...]}.
class JsonExporter final : public MotionExporter {
  public:
    JsonExporter(const std::filesystem::path& file, const pack::Manifest& manifest);
    void write(int64_t frame, std::span<const float> motion) override;
    void finish() override;

  private:
    int64_t dims_;
    ExportFile file_;
    int64_t next_frame_ = 0;
};

// numpy archive: motion float32 [frames, dims], names <U*, fps float64 scalar.
class NpzExporter final : public MotionExporter {
  public:
    NpzExporter(const std::filesystem::path& file, const pack::Manifest& manifest);
    void write(int64_t frame, std::span<const float> motion) override;
    void finish() override;

  private:
    struct Member {
        std::string name;
        uint32_t crc = 0;
        uint32_t size = 0;
        uint32_t offset = 0;
    };
    void begin_member(const std::string& name, std::string_view npy_header);
    void end_member();
    void append_directory();

    int64_t dims_;
    double fps_;
    std::vector<std::string> names_;
    ExportFile file_;
    std::vector<Member> members_;
    int64_t next_frame_ = 0;
};

}  // namespace newscaster::motion
