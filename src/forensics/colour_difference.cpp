#include "forensics/colour_difference.h"

#include <cmath>
#include <numbers>

namespace newscaster::forensics {

namespace {

constexpr double kDegree = std::numbers::pi / 180.0;
constexpr double kTwentyFiveTo7 = 6103515625.0;

double linear(uint8_t value) {
    const double v = value / 255.0;
    return v <= 0.04045 ? v / 12.92 : std::pow((v + 0.055) / 1.055, 2.4);
}

double cube_root_or_line(double t) {
    constexpr double kEdge = 216.0 / 24389.0;
    return t > kEdge ? std::cbrt(t) : (24389.0 / 27.0 * t + 16.0) / 116.0;
}

// Degrees, 0 .. 360.
double hue(double a, double b) {
    if (a == 0.0 && b == 0.0) return 0.0;
    const double angle = std::atan2(b, a) / kDegree;
    return angle < 0.0 ? angle + 360.0 : angle;
}

double to_7th(double value) {
    return std::pow(value, 7.0);
}

// Mean of two hues on the circle; the sum where a colour has none.
double mean_hue(double h1, double h2, double product) {
    if (product == 0.0) return h1 + h2;
    if (std::abs(h1 - h2) <= 180.0) return (h1 + h2) / 2.0;
    return h1 + h2 < 360.0 ? (h1 + h2 + 360.0) / 2.0 : (h1 + h2 - 360.0) / 2.0;
}

}  // namespace

Lab lab_of(const std::array<uint8_t, 3>& rgb) {
    const double r = linear(rgb[0]);
    const double g = linear(rgb[1]);
    const double b = linear(rgb[2]);
    const double x = (0.4124564 * r + 0.3575761 * g + 0.1804375 * b) / 0.95047;
    const double y = 0.2126729 * r + 0.7151522 * g + 0.0721750 * b;
    const double z = (0.0193339 * r + 0.1191920 * g + 0.9503041 * b) / 1.08883;
    const double fx = cube_root_or_line(x);
    const double fy = cube_root_or_line(y);
    const double fz = cube_root_or_line(z);
    return {116.0 * fy - 16.0, 500.0 * (fx - fy), 200.0 * (fy - fz)};
}

// Names as in the paper's equations 2 to 22.
double delta_e_2000(const Lab& first, const Lab& second) {
    const double c_mean = (std::hypot(first.a, first.b) + std::hypot(second.a, second.b)) / 2.0;
    const double g = 0.5 * (1.0 - std::sqrt(to_7th(c_mean) / (to_7th(c_mean) + kTwentyFiveTo7)));
    const double a1 = (1.0 + g) * first.a;
    const double a2 = (1.0 + g) * second.a;
    const double c1 = std::hypot(a1, first.b);
    const double c2 = std::hypot(a2, second.b);
    const double h1 = hue(a1, first.b);
    const double h2 = hue(a2, second.b);

    const double dl = second.l - first.l;
    const double dc = c2 - c1;
    double dh = c1 * c2 == 0.0 ? 0.0 : h2 - h1;
    if (dh > 180.0) dh -= 360.0;
    if (dh < -180.0) dh += 360.0;
    const double dh_big = 2.0 * std::sqrt(c1 * c2) * std::sin(dh / 2.0 * kDegree);

    const double l_mean = (first.l + second.l) / 2.0;
    const double c_bar = (c1 + c2) / 2.0;
    const double h_bar = mean_hue(h1, h2, c1 * c2);
    const double t = 1.0 - 0.17 * std::cos((h_bar - 30.0) * kDegree) +
                     0.24 * std::cos(2.0 * h_bar * kDegree) +
                     0.32 * std::cos((3.0 * h_bar + 6.0) * kDegree) -
                     0.20 * std::cos((4.0 * h_bar - 63.0) * kDegree);
    const double off = (h_bar - 275.0) / 25.0;
    const double d_theta = 30.0 * std::exp(-off * off);
    const double r_c = 2.0 * std::sqrt(to_7th(c_bar) / (to_7th(c_bar) + kTwentyFiveTo7));
    const double l_50 = (l_mean - 50.0) * (l_mean - 50.0);
    const double s_l = 1.0 + 0.015 * l_50 / std::sqrt(20.0 + l_50);
    const double s_c = 1.0 + 0.045 * c_bar;
    const double s_h = 1.0 + 0.015 * c_bar * t;
    const double r_t = -std::sin(2.0 * d_theta * kDegree) * r_c;
    const double l = dl / s_l;
    const double c = dc / s_c;
    const double h = dh_big / s_h;
    return std::sqrt(l * l + c * c + h * h + r_t * c * h);
}

}  // namespace newscaster::forensics
