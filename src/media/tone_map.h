// HDR colours (ITU-R BT.2100: PQ and HLG) as BT.709 SDR. Private to this room.
//
// Display light is found by the EOTF of BT.2100 (HLG: for a screen of 1000 nit), put relative to
// the reference white of 203 nit (BT.2408), converted to the primaries of BT.709 and encoded for
// the display of BT.1886 (power 2.4). What is darker than 0.8 of the SDR signal stays as it is;
// above, the largest of the three channels follows Reinhard's extended curve (2002, eq. 4) up to
// the brightest the material has, and the others keep their ratio to it, so the hue stays.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "media/av_ptr.h"

namespace newscaster::media {

enum class HdrTransfer { pq, hlg };
enum class Primaries { bt709, bt2020, p3_d65 };

struct HdrColours {
    HdrTransfer transfer = HdrTransfer::pq;
    Primaries primaries = Primaries::bt2020;
    double peak_nit = 1000.0;  // the brightest of the material, 203 to 10000
    bool operator==(const HdrColours&) const = default;
};

[[nodiscard]] bool is_hdr(const AVFrame& frame);
// Of a frame that is; what it does not tell is taken to be BT.2020 and 1000 nit.
[[nodiscard]] HdrColours hdr_colours_of(const AVFrame& frame);

// Red, green and blue of the signal, 0..1, exactly.
[[nodiscard]] std::array<double, 3> tone_mapped(const HdrColours& colours,
                                                const std::array<double, 3>& signal);

// The same for pictures, to a level: the curves are tables. Immutable: threads may share it.
class ToneMap {
  public:
    explicit ToneMap(const HdrColours& colours);

    [[nodiscard]] const HdrColours& colours() const { return colours_; }
    // rgb: three 16-bit values a pixel, full range; target: three bytes a pixel.
    void apply(std::span<const uint16_t> rgb, std::span<uint8_t> target) const;

  private:
    // Of light the square root, which the curves are nearly straight over, is the key.
    struct Curve {
        float level = 0.0F;  // 0..255 before compression
        float gain = 0.0F;   // by compression, where this is the largest channel
    };
    [[nodiscard]] Curve curve_at(float light) const;

    HdrColours colours_;
    std::vector<float> light_;   // of each 16-bit signal
    std::vector<Curve> curves_;  // kCurveNodes, from no light to the most
};

}  // namespace newscaster::media
