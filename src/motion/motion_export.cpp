#include "motion/motion_export.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "motion/exporters.h"
#include "newscaster/error.h"

namespace newscaster::motion {

std::unique_ptr<MotionExporter> MotionExporter::open(const std::filesystem::path& file,
                                                     const pack::Manifest& manifest) {
    const std::string extension = file.extension().string();
    if (extension == ".csv") return std::make_unique<CsvExporter>(file, manifest);
    if (extension == ".json") return std::make_unique<JsonExporter>(file, manifest);
    if (extension == ".npz") return std::make_unique<NpzExporter>(file, manifest);
    throw Error(ErrorCode::bad_input,
                fmt::format("{}: found motion format \"{}\", wanted .csv, .json or .npz",
                            file.string(), extension));
}

JsonExporter::JsonExporter(const std::filesystem::path& file, const pack::Manifest& manifest)
    : dims_(manifest.motion.dims), file_(file) {
    file_.append(fmt::format("{{\"fps\": {}, \"names\": {}, \"frames\": [",
                             manifest.frame_rate.to_double(),
                             nlohmann::json(dim_names(manifest.motion)).dump()));
}

void JsonExporter::write(int64_t frame, std::span<const float> motion) {
    require_row(frame, next_frame_, motion, dims_);
    file_.append(fmt::format("{}[{}]", frame == 0 ? "\n" : ",\n", fmt::join(motion, ", ")));
    ++next_frame_;
}

void JsonExporter::finish() {
    file_.append("\n]}\n");
    file_.commit();
}

}  // namespace newscaster::motion
