// Curves over the frames of a video as SVG.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace newscaster::forensics {

struct Curve {
    std::string name;
    std::vector<std::optional<double>> values;  // per frame; gaps where there is none
};

struct Plot {
    std::string title;
    std::string unit;
    std::vector<Curve> curves;  // at most six
    std::vector<bool> marks;    // per frame: a tick under the curves; may be empty
    std::string mark_name;
};

// A picture for a page: axes, grid, legend, curves, marks. "" without values. fps: for the times
// below; 0: none.
[[nodiscard]] std::string to_svg(const Plot& plot, double fps);

// Text as it may stand in HTML and SVG.
[[nodiscard]] std::string escaped(const std::string& text);

}  // namespace newscaster::forensics
