#include "registration/crop_box.h"

#include <fmt/format.h>

#include <cmath>
#include <numbers>
#include <string>

#include "newscaster/error.h"

namespace newscaster::registration {

namespace {

constexpr double kMinSizePx = 16.0;
constexpr double kMaxSizePx = 32768.0;

[[noreturn]] void fail(const CropBox& box, const std::string& wanted) {
    throw Error(ErrorCode::bad_input, fmt::format("crop box: found {:g},{:g},{:g},{:g}, wanted {}",
                                                  box.x, box.y, box.size, box.angle_deg, wanted));
}

}  // namespace

void check_crop_box(const CropBox& box, int width, int height) {
    if (!std::isfinite(box.x) || !std::isfinite(box.y) || !std::isfinite(box.size) ||
        !std::isfinite(box.angle_deg)) {
        fail(box, "finite numbers");
    }
    if (box.size < kMinSizePx || box.size > kMaxSizePx) {
        fail(box, fmt::format("a size of {:g} to {:g} pixels", kMinSizePx, kMaxSizePx));
    }
    if (!is_centred_on(box, width, height)) {
        fail(box, fmt::format("a square whose centre is on the picture of {}x{}", width, height));
    }
}

bool is_centred_on(const CropBox& box, int width, int height) {
    const double cx = box.x + box.size / 2.0;
    const double cy = box.y + box.size / 2.0;
    return cx >= 0.0 && cx <= width && cy >= 0.0 && cy <= height;
}

Affine crop_to_picture(const CropBox& box, int crop_size) {
    const double scale = box.size / crop_size;
    if (box.angle_deg == 0.0) return {scale, 0.0, box.x, 0.0, scale, box.y};
    const double angle = box.angle_deg * std::numbers::pi / 180.0;
    const double c = scale * std::cos(angle);
    const double s = scale * std::sin(angle);
    const double half = crop_size / 2.0;
    return {c, -s, box.x + box.size / 2.0 - (c - s) * half,
            s, c,  box.y + box.size / 2.0 - (s + c) * half};
}

}  // namespace newscaster::registration
