#include "forensics/seam.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "forensics/colour_difference.h"
#include "forensics/picture_metrics.h"

namespace newscaster::forensics {

namespace {

// The four pixels around the border at one place of it: two outside, two inside.
struct Crossing {
    std::array<int, 4> x{};
    std::array<int, 4> y{};
};

std::vector<Crossing> crossings(const Box& box, int width, int height) {
    std::vector<Crossing> all;
    const auto add = [&](int x, int y, int dx, int dy) {  // (x, y): first pixel inside
        Crossing c;
        for (int i = 0; i < 4; ++i) {
            c.x.at(static_cast<size_t>(i)) = x + (i - 2) * dx;
            c.y.at(static_cast<size_t>(i)) = y + (i - 2) * dy;
        }
        all.push_back(c);
    };
    for (int y = box.y0; y < box.y1; ++y) {
        if (box.x0 >= 2) add(box.x0, y, 1, 0);
        if (box.x1 <= width - 2) add(box.x1 - 1, y, -1, 0);
    }
    for (int x = box.x0; x < box.x1; ++x) {
        if (box.y0 >= 2) add(x, box.y0, 0, 1);
        if (box.y1 <= height - 2) add(x, box.y1 - 1, 0, -1);
    }
    return all;
}

Lab lab_at(const media::VideoPicture& picture, int x, int y) {
    const RgbImage one = media::to_rgb(picture, {x, y, x + 1, y + 1});
    return lab_of({one.pixels[0], one.pixels[1], one.pixels[2]});
}

void measure_colours(const media::VideoPicture& picture, const Box& box, SeamMetrics& seam) {
    const auto all = crossings(box, picture.width, picture.height);
    if (all.empty()) return;
    double across = 0.0;
    double beside = 0.0;
    for (const Crossing& c : all) {
        std::array<Lab, 4> lab;
        for (size_t i = 0; i < 4; ++i) lab.at(i) = lab_at(picture, c.x.at(i), c.y.at(i));
        const double d = delta_e_2000(lab[1], lab[2]);
        across += d;
        seam.across_max = std::max(seam.across_max, d);
        beside += 0.5 * (delta_e_2000(lab[0], lab[1]) + delta_e_2000(lab[2], lab[3]));
    }
    seam.across_mean = across / static_cast<double>(all.size());
    seam.beside_mean = beside / static_cast<double>(all.size());
}

// Rings of pixels at one distance from the border: 0 is the last one inside.
void measure_halo(const media::VideoPicture& reference, const media::VideoPicture& picture,
                  const Box& box, SeamMetrics& seam) {
    for (int ring = -SeamMetrics::kReach; ring < SeamMetrics::kReach; ++ring) {
        // ring < 0: inside, -1 next to the border; ring >= 0: outside.
        const int grow = ring + 1;
        const Box r{box.x0 - grow, box.y0 - grow, box.x1 + grow, box.y1 + grow};
        int64_t sum = 0;
        int64_t count = 0;
        const auto add = [&](int x, int y) {
            if (x < 0 || y < 0 || x >= picture.width || y >= picture.height) return;
            const auto at = static_cast<size_t>(y) * static_cast<size_t>(picture.width) +
                            static_cast<size_t>(x);
            sum += std::abs(int{picture.y[at]} - int{reference.y[at]});
            ++count;
        };
        for (int x = r.x0; x < r.x1; ++x) {
            add(x, r.y0);
            add(x, r.y1 - 1);
        }
        for (int y = r.y0 + 1; y < r.y1 - 1; ++y) {
            add(r.x0, y);
            add(r.x1 - 1, y);
        }
        seam.halo.at(static_cast<size_t>(ring + SeamMetrics::kReach)) =
            count == 0 ? 0.0 : static_cast<double>(sum) / static_cast<double>(count);
    }
}

// Least squares shift between two planes (Lucas and Kanade 1981), pixels of the plane.
std::array<double, 2> shift_of(const Plane& from, const Plane& to, const Box& box) {
    double xx = 0.0;
    double xy = 0.0;
    double yy = 0.0;
    double xt = 0.0;
    double yt = 0.0;
    for (int y = std::max(box.y0, 1); y < std::min(box.y1, from.height - 1); ++y) {
        for (int x = std::max(box.x0, 1); x < std::min(box.x1, from.width - 1); ++x) {
            const double gx = 0.5 * (from.row(y)[x + 1] - from.row(y)[x - 1]);
            const double gy = 0.5 * (from.row(y + 1)[x] - from.row(y - 1)[x]);
            const double d = static_cast<double>(from.row(y)[x]) - to.row(y)[x];
            xx += gx * gx;
            xy += gx * gy;
            yy += gy * gy;
            xt += gx * d;
            yt += gy * d;
        }
    }
    const double determinant = xx * yy - xy * xy;
    if (determinant <= 1e-6 * xx * yy) {  // edges of one direction only
        return {xx > 0.0 ? xt / xx : 0.0, yy > 0.0 ? yt / yy : 0.0};
    }
    return {(yy * xt - xy * yt) / determinant, (xx * yt - xy * xt) / determinant};
}

void measure_phase(const media::VideoPicture& reference, const media::VideoPicture& picture,
                   const Box& box, SeamMetrics& seam) {
    const int width = picture.width;
    const int chroma_width = picture.chroma_width();
    const int chroma_height = (picture.height + 1) / 2;
    const Box half{box.x0 / 2, box.y0 / 2, box.x1 / 2, box.y1 / 2};
    const auto luma = shift_of({reference.y.data(), width, picture.height},
                               {picture.y.data(), width, picture.height}, box);
    const auto u = shift_of({reference.u.data(), chroma_width, chroma_height},
                            {picture.u.data(), chroma_width, chroma_height}, half);
    const auto v = shift_of({reference.v.data(), chroma_width, chroma_height},
                            {picture.v.data(), chroma_width, chroma_height}, half);
    seam.chroma_phase_x = u[0] + v[0] - luma[0];  // two luma pixels each, mean of both planes
    seam.chroma_phase_y = u[1] + v[1] - luma[1];
}

}  // namespace

SeamMetrics inspect_seam(const media::VideoPicture& reference, const media::VideoPicture& picture,
                         const Box& box) {
    SeamMetrics seam;
    measure_colours(picture, box, seam);
    measure_halo(reference, picture, box, seam);
    measure_phase(reference, picture, box, seam);
    return seam;
}

}  // namespace newscaster::forensics
