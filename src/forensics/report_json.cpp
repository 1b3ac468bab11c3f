#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include "forensics/report.h"

namespace newscaster::forensics {

namespace {

using nlohmann::json;

json box_json(const std::optional<Box>& box) {
    if (!box) return nullptr;
    return json::array({box->x0, box->y0, box->x1, box->y1});
}

json number(const std::optional<double>& value) {
    return value ? json(*value) : json(nullptr);
}

using Value = std::function<std::optional<double>(const FrameMeasures&)>;

// Mean and worst over the frames that have a value; the others are equal or not measured.
void summarize(const TestMeasures& test, const std::string& name, const Value& value, bool low_bad,
               json& summary) {
    double sum = 0.0;
    int64_t count = 0;
    std::optional<double> worst;
    size_t worst_frame = 0;
    for (size_t i = 0; i < test.frames.size(); ++i) {
        const auto found = value(test.frames[i]);
        if (!found) continue;
        sum += *found;
        ++count;
        if (!worst || (low_bad ? *found < *worst : *found > *worst)) {
            worst = found;
            worst_frame = i;
        }
    }
    summary[name] = count == 0 ? json(nullptr) : json(sum / static_cast<double>(count));
    summary[name + "_worst"] = number(worst);
    summary[name + "_worst_frame"] = worst ? json(worst_frame) : json(nullptr);
}

json per_frame(const TestMeasures& test, const Value& value) {
    json list = json::array();
    for (const FrameMeasures& frame : test.frames) list.push_back(number(value(frame)));
    return list;
}

// A part's PSNR and SSIM, where the part was measured.
using Part = std::function<const Likeness*(const FrameMeasures&)>;

void add_part(const TestMeasures& test, const std::string& part, const Part& of, json& summary,
              json& frames) {
    if (test.frames.empty() || of(test.frames.front()) == nullptr) return;
    const Value psnr = [&](const FrameMeasures& m) { return of(m)->psnr_db; };
    const Value ssim = [&](const FrameMeasures& m) { return std::optional(of(m)->ssim); };
    summarize(test, part + "_psnr_" + test.name, psnr, true, summary);
    summarize(test, part + "_ssim_" + test.name, ssim, true, summary);
    frames[part + "_psnr"] = per_frame(test, psnr);
    frames[part + "_ssim"] = per_frame(test, ssim);
}

void add_seam(const TestMeasures& test, json& summary, json& frames) {
    if (test.frames.empty() || !test.frames.front().seam) return;
    const auto add = [&](const std::string& name, double SeamMetrics::*member) {
        const Value value = [member](const FrameMeasures& m) {
            return std::optional(std::abs((*m.seam).*member));
        };
        summarize(test, name + "_" + test.name, value, false, summary);
        frames[name] = per_frame(test, value);
    };
    add("seam_de2000", &SeamMetrics::across_mean);
    add("seam_de2000_max", &SeamMetrics::across_max);
    add("seam_beside_de2000", &SeamMetrics::beside_mean);
    add("chroma_phase_x", &SeamMetrics::chroma_phase_x);
    add("chroma_phase_y", &SeamMetrics::chroma_phase_y);
    json halo = json::array();
    for (size_t ring = 0; ring < test.frames.front().seam->halo.size(); ++ring) {
        double sum = 0.0;
        for (const FrameMeasures& m : test.frames) sum += m.seam->halo.at(ring);
        halo.push_back(sum / static_cast<double>(test.frames.size()));
    }
    summary["halo_" + test.name] = halo;
}

}  // namespace

json to_json(const Measured& measured, const std::string& reference, const Regions& regions,
             const std::string& origin) {
    json summary = json::object();
    json tests = json::array();
    for (const TestMeasures& test : measured.tests) {
        json frames = json::object();
        add_part(
            test, "canvas", [](const FrameMeasures& m) { return &m.canvas; }, summary, frames);
        const Value rgb = [](const FrameMeasures& m) { return m.canvas_rgb_psnr_db; };
        summarize(test, "canvas_rgb_psnr_" + test.name, rgb, true, summary);
        frames["canvas_rgb_psnr"] = per_frame(test, rgb);
        add_part(
            test, "mouth", [](const FrameMeasures& m) { return m.mouth ? &*m.mouth : nullptr; },
            summary, frames);
        add_part(
            test, "eyes", [](const FrameMeasures& m) { return m.eyes ? &*m.eyes : nullptr; },
            summary, frames);
        add_seam(test, summary, frames);
        const auto equal = std::ranges::count_if(
            test.frames, [](const FrameMeasures& m) { return !m.canvas_rgb_psnr_db.has_value(); });
        summary["equal_frames_" + test.name] = equal;
        tests.push_back({{"name", test.name}, {"file", test.file}, {"per_frame", frames}});
    }
    return {{"format", "newscaster-forensics"},
            {"schema_version", 1},
            {"reference", reference},
            {"width", measured.format.width},
            {"height", measured.format.height},
            {"frame_rate", measured.format.fps.to_double()},
            {"frames", measured.frames()},
            {"regions",
             {{"origin", origin},
              {"face", box_json(regions.face)},
              {"mouth", box_json(regions.mouth)},
              {"eyes", box_json(regions.eyes)}}},
            {"summary", summary},
            {"tests", tests}};
}

}  // namespace newscaster::forensics
