#include "registration/face_detector.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace newscaster::registration {

namespace {

// The published network: two anchors per cell of a 16 x 16 grid, then six per cell of 8 x 8, and
// per anchor a box (centre, size) and six points, in input pixels relative to the anchor.
struct Grid {
    int cells;
    int anchors;
};
constexpr std::array<Grid, 2> kGrids{{{16, 2}, {8, 6}}};
constexpr size_t kAnchors = 896;
constexpr size_t kValues = 16;
constexpr size_t kLeftEye = 4;  // first of its two values; the person's right eye
constexpr size_t kRightEye = 6;

constexpr double kMinScore = 0.5;
constexpr double kMinCandidateScore = 0.3;  // on the first look
constexpr double kCloserLook = 3.0;         // square of the second look, in faces
constexpr double kSmallestSquarePx = 16.0;
constexpr double kSmallestPartPx = 256.0;  // fainter faces are too small for an avatar
constexpr double kSameFaceOverlap = 0.3;
constexpr double kEquallyLarge = 0.9;
// Squares that are searched, in longest sides of the picture: all of it, all with room around it (a
// face that fills it), and ever smaller parts.
constexpr std::array<double, 5> kLevels{1.0, 2.0, 0.5, 0.25, 0.125};

std::vector<Point> make_anchors() {
    std::vector<Point> anchors;
    for (const Grid& grid : kGrids) {
        for (int cell = 0; cell < grid.cells * grid.cells; ++cell) {
            const int row = cell / grid.cells;
            const int column = cell % grid.cells;
            const Point centre{(column + 0.5) / grid.cells, (row + 0.5) / grid.cells};
            anchors.insert(anchors.end(), static_cast<size_t>(grid.anchors), centre);
        }
    }
    return anchors;
}

double overlap(const Face& a, const Face& b) {
    const double width = std::min(a.x1, b.x1) - std::max(a.x0, b.x0);
    const double height = std::min(a.y1, b.y1) - std::max(a.y0, b.y0);
    if (width <= 0.0 || height <= 0.0) return 0.0;
    return width * height / (a.area() + b.area() - width * height);
}

// Mean of the faces, weighted by score; the best score.
Face weighted_mean(const std::vector<Face>& faces) {
    Face mean;
    double total = 0.0;
    for (const Face& face : faces) {
        const double w = face.score;
        total += w;
        mean.x0 += w * face.x0;
        mean.y0 += w * face.y0;
        mean.x1 += w * face.x1;
        mean.y1 += w * face.y1;
        mean.left_eye.x += w * face.left_eye.x;
        mean.left_eye.y += w * face.left_eye.y;
        mean.right_eye.x += w * face.right_eye.x;
        mean.right_eye.y += w * face.right_eye.y;
    }
    for (double* value : {&mean.x0, &mean.y0, &mean.x1, &mean.y1, &mean.left_eye.x,
                          &mean.left_eye.y, &mean.right_eye.x, &mean.right_eye.y}) {
        *value /= total;
    }
    mean.score = faces.front().score;
    return mean;
}

// Squares of this side that cover the picture, each half over the next.
std::vector<CropBox> parts_of(const RgbImage& picture, double side) {
    const auto starts = [&](int extent) {
        std::vector<double> places;
        const auto steps = static_cast<int>(std::max(0.0, std::ceil((extent - side) / (side / 2))));
        for (int i = 0; i <= steps; ++i) {
            places.push_back(steps == 0 ? (extent - side) / 2 : (extent - side) * i / steps);
        }
        return places;
    };
    std::vector<CropBox> squares;
    for (const double y : starts(picture.height)) {
        for (const double x : starts(picture.width)) {
            squares.push_back({.x = x, .y = y, .size = side});
        }
    }
    return squares;
}

}  // namespace

FaceDetector::FaceDetector(device::Device& device, const std::filesystem::path& file)
    : network_(device, file, {kAnchors * kValues, kAnchors}), anchors_(make_anchors()) {}

void FaceDetector::detect_in(const RgbImage& picture, const CropBox& square, double min_score,
                             std::vector<Face>& faces) {
    const auto outputs = network_.run(picture, square, -1.0F);
    const double scale = square.size / network_.side();
    for (size_t i = 0; i < anchors_.size(); ++i) {
        const double score = 1.0 / (1.0 + std::exp(-double{outputs[1][i]}));
        if (!(score >= min_score)) continue;
        const auto row = outputs[0].subspan(i * kValues, kValues);
        const auto point = [&](size_t at) {
            return Point{square.x + anchors_[i].x * square.size + row[at] * scale,
                         square.y + anchors_[i].y * square.size + row[at + 1] * scale};
        };
        const Point centre = point(0);
        const double half_width = row[2] * scale / 2.0;
        const double half_height = row[3] * scale / 2.0;
        if (!(half_width > 0.0) || !(half_height > 0.0)) continue;
        faces.push_back({.x0 = centre.x - half_width,
                         .y0 = centre.y - half_height,
                         .x1 = centre.x + half_width,
                         .y1 = centre.y + half_height,
                         .score = score,
                         .left_eye = point(kLeftEye),
                         .right_eye = point(kRightEye)});
    }
}

// The same face in a closer square, where the network sees more of it; none: it was no face.
std::optional<Face> FaceDetector::look_again(const RgbImage& picture, const Face& face) {
    const double side = kCloserLook * std::max(face.width(), face.height());
    const CropBox square{.x = (face.x0 + face.x1 - side) / 2.0,
                         .y = (face.y0 + face.y1 - side) / 2.0,
                         .size = std::max(side, kSmallestSquarePx)};
    std::vector<Face> found;
    detect_in(picture, square, kMinScore, found);
    found = join_overlapping(std::move(found));
    const auto same = std::ranges::max_element(
        found, {}, [&](const Face& candidate) { return overlap(candidate, face); });
    if (same == found.end() || overlap(*same, face) <= 0.0) return std::nullopt;
    return *same;
}

std::vector<Face> FaceDetector::detect_level(const RgbImage& picture, double side) {
    std::vector<Face> candidates;
    for (const CropBox& square : parts_of(picture, side)) {
        detect_in(picture, square, kMinCandidateScore, candidates);
    }
    std::vector<Face> faces;
    for (const Face& candidate : join_overlapping(std::move(candidates))) {
        if (const auto face = look_again(picture, candidate)) faces.push_back(*face);
    }
    return join_overlapping(std::move(faces));
}

void FaceDetector::detect(const RgbImage& picture,
                          const std::function<bool(const std::vector<Face>&)>& accept) {
    const double longest = std::max(picture.width, picture.height);
    for (const double share : kLevels) {
        const double side = share * longest;
        if (share < 1.0 && side < kSmallestPartPx) return;
        if (accept(detect_level(picture, side))) return;
    }
}

std::vector<Face> join_overlapping(std::vector<Face> faces) {
    std::ranges::sort(faces, std::greater<>(), &Face::score);
    std::vector<Face> joined;
    while (!faces.empty()) {
        std::vector<Face> same;
        std::vector<Face> others;
        for (const Face& face : faces) {
            const bool near = same.empty() || overlap(same.front(), face) > kSameFaceOverlap;
            (near ? same : others).push_back(face);
        }
        joined.push_back(weighted_mean(same));
        faces = std::move(others);
    }
    std::ranges::sort(joined, std::greater<>(), &Face::area);
    return joined;
}

size_t choose_face(const std::vector<Face>& faces, FaceChoice choice, int width, int height) {
    const auto off_centre = [&](const Face& face) {
        return std::hypot((face.x0 + face.x1 - width) / 2.0, (face.y0 + face.y1 - height) / 2.0);
    };
    size_t best = 0;
    for (size_t i = 1; i < faces.size(); ++i) {
        const bool eligible = choice == FaceChoice::most_central ||
                              faces[i].area() >= kEquallyLarge * faces.front().area();
        if (eligible && off_centre(faces[i]) < off_centre(faces[best])) best = i;
    }
    return best;
}

}  // namespace newscaster::registration
