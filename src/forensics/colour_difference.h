// Colours as people see them apart: CIE L*a*b* and CIEDE2000.
#pragma once

#include <array>
#include <cstdint>

namespace newscaster::forensics {

struct Lab {
    double l = 0.0;  // 0 .. 100
    double a = 0.0;
    double b = 0.0;
};

// sRGB (IEC 61966-2-1), 0 .. 255 each, to L*a*b* under D65.
[[nodiscard]] Lab lab_of(const std::array<uint8_t, 3>& rgb);

// Sharma, Wu and Dalal 2005, "The CIEDE2000 color-difference formula"; weights kL = kC = kH = 1.
// About 1 is the least difference that is seen side by side.
[[nodiscard]] double delta_e_2000(const Lab& first, const Lab& second);

}  // namespace newscaster::forensics
