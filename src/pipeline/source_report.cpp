#include "pipeline/source_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/file.h"
#include "forensics/pictures.h"
#include "media/image.h"
#include "newscaster/error.h"
#include "registration/crop_box.h"
#include "registration/crop_sampler.h"

namespace newscaster::pipeline {

namespace {

using nlohmann::json;
using registration::FrameMeasures;

constexpr const char* kFormat = "newscaster-source-report";
constexpr int kVersion = 1;
constexpr size_t kMostShown = 12;
constexpr size_t kColumns = 4;
constexpr int kCellPx = 256;
constexpr uintmax_t kMostReportBytes = 1 << 20;

json spread_json(const std::vector<FrameMeasures>& frames, double FrameMeasures::*measure) {
    const auto spread = registration::spread_of(frames, measure);
    const auto rounded = [](double value) { return std::round(1e4 * value) / 1e4; };
    return {{"least", rounded(spread.least)},
            {"mean", rounded(spread.mean)},
            {"most", rounded(spread.most)}};
}

}  // namespace

void SourceReport::add(const RgbImage& picture, const registration::FaceLandmarks& face,
                       const CropBox& crop) {
    const Affine map = registration::crop_to_picture(crop, crop_size_);
    RgbImage cut = registration::cut_crop(picture, map, crop_size_);
    const auto number = static_cast<int64_t>(frames_.size());
    frames_.push_back(registration::measure_frame(picture, cut, face));
    if (number % every_ != 0) return;
    shown_.push_back(
        forensics::reduced(registration::with_points(std::move(cut), face, map), kCellPx));
    if (shown_.size() <= kMostShown) return;
    // Too many: every other one goes, and from here on half as many come.
    every_ *= 2;
    std::vector<RgbImage> kept;
    for (size_t i = 0; i < shown_.size(); i += 2) kept.push_back(std::move(shown_[i]));
    shown_ = std::move(kept);
}

void SourceReport::write(const std::filesystem::path& folder, const std::string& source) const {
    const auto verdict = registration::judge(frames_, clip_);
    const auto of = [&](double FrameMeasures::*measure) { return spread_json(frames_, measure); };
    const json report{{"format", kFormat},
                      {"schema_version", kVersion},
                      {"source", source},
                      {"frames", clip_.frames},
                      {"frames_without_face", clip_.without_face},
                      {"frames_mouth_covered", clip_.mouth_covered},
                      {"frames_measured", frames_.size()},
                      {"verdict", verdict.word},
                      {"advice", verdict.advice},
                      {"face_px", of(&FrameMeasures::face_px)},
                      {"yaw_deg", of(&FrameMeasures::yaw_deg)},
                      {"pitch_deg", of(&FrameMeasures::pitch_deg)},
                      {"presence", of(&FrameMeasures::presence)},
                      {"inside", of(&FrameMeasures::inside)},
                      {"mouth_open", of(&FrameMeasures::mouth_open)},
                      {"eyes_open", of(&FrameMeasures::eyes_open)},
                      {"brightness", of(&FrameMeasures::brightness)},
                      {"dark_share", of(&FrameMeasures::dark_share)},
                      {"bright_share", of(&FrameMeasures::bright_share)},
                      {"sharpness", of(&FrameMeasures::sharpness)}};
    std::vector<std::vector<RgbImage>> rows;
    for (size_t i = 0; i < shown_.size(); ++i) {
        if (i % kColumns == 0) rows.emplace_back();
        rows.back().push_back(shown_[i]);
    }
    media::write_png(folder / kSheetFile, forensics::montage(rows));
    write_text_atomic(folder / kReportFile, report.dump(2) + "\n");
}

registration::Verdict read_verdict(const std::filesystem::path& folder) {
    const auto file = folder / kReportFile;
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(file, ignored)) return {};
    try {
        const json report = json::parse(read_text(file, kMostReportBytes));
        registration::Verdict verdict;
        verdict.word = report.at("verdict").get<std::string>();
        verdict.advice = report.at("advice").get<std::vector<std::string>>();
        return verdict;
    } catch (const json::exception& exception) {
        throw Error(ErrorCode::bad_pack,
                    fmt::format("{}: found {}, wanted a report that avatar create wrote",
                                file.string(), exception.what()));
    }
}

}  // namespace newscaster::pipeline
