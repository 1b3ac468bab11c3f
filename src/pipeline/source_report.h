// The report that a new avatar gets: measures, verdict and a contact sheet. Private to this room.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "newscaster/registration.h"
#include "registration/material.h"

namespace newscaster::pipeline {

inline constexpr const char* kReportFile = "report.json";
inline constexpr const char* kSheetFile = "contact_sheet.png";

class SourceReport {
  public:
    // Up to twelve frames, evenly spread, are shown on the contact sheet.
    explicit SourceReport(int crop_size) : crop_size_(crop_size) {}

    void add(const RgbImage& picture, const registration::FaceLandmarks& face, const CropBox& crop);

    void set_clip(const registration::ClipCounts& clip) { clip_ = clip; }

    // No frame with a face was added, as when the user gave the crop box.
    [[nodiscard]] bool empty() const { return frames_.empty(); }

    // report.json and contact_sheet.png in an avatar's folder. Throws Error(io).
    void write(const std::filesystem::path& folder, const std::string& source) const;

  private:
    int crop_size_;
    registration::ClipCounts clip_;
    int64_t every_ = 1;  // frame whose number it divides is shown
    std::vector<registration::FrameMeasures> frames_;
    std::vector<RgbImage> shown_;
};

// The verdict in an avatar's report.json; an empty word where there is none. Throws Error(bad_pack)
// for a damaged file.
[[nodiscard]] registration::Verdict read_verdict(const std::filesystem::path& folder);

}  // namespace newscaster::pipeline
