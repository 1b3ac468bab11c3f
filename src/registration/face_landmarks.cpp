#include "registration/face_landmarks.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <span>

#include "registration/crop_box.h"

namespace newscaster::registration {

namespace {

constexpr size_t kMeshValues = FaceLandmarks::kMeshPoints * 3;
constexpr size_t kEyeContourValues = 213;
constexpr size_t kIrisValues = 15;   // five points; the first is the centre
constexpr double kMeshMargin = 1.5;  // squares that the networks were trained on, in face and
constexpr double kEyeMargin = 2.3;   // eye widths

// MediaPipe's point numbers. Corners and lids of the eye on the picture's left and right, outer
// corner first; lids as pairs below and above.
struct EyePoints {
    size_t outer;
    size_t inner;
    std::array<std::array<size_t, 2>, 3> lids;
};
constexpr EyePoints kLeftEye{33, 133, {{{145, 159}, {144, 160}, {153, 158}}}};
constexpr EyePoints kRightEye{263, 362, {{{374, 386}, {373, 387}, {380, 385}}}};
constexpr size_t kMouthLeft = 61;
constexpr size_t kMouthRight = 291;

// The outline from one ear over the chin to the other, and the brows.
constexpr std::array<size_t, 43> kFramedPoints{234, 93,  132, 58,  172, 136, 150, 149, 176, 148,
                                               152, 377, 400, 378, 379, 365, 397, 288, 361, 323,
                                               454, 127, 356,                                    //
                                               70,  63,  105, 66,  107, 55,  65,  52,  53,  46,  //
                                               300, 293, 334, 296, 336, 285, 295, 282, 283, 276};

Point3 operator+(const Point3& a, const Point3& b) {
    return {a.x + b.x, a.y + b.y, a.z + b.z};
}
Point3 operator-(const Point3& a, const Point3& b) {
    return {a.x - b.x, a.y - b.y, a.z - b.z};
}
Point3 operator*(const Point3& a, double f) {
    return {a.x * f, a.y * f, a.z * f};
}

double length(const Point3& a) {
    return std::sqrt(a.x * a.x + a.y * a.y + a.z * a.z);
}

Point3 unit(const Point3& a) {
    const double size = length(a);
    return size > 1e-8 ? a * (1.0 / size) : Point3{};
}

Point3 middle(const Point3& a, const Point3& b) {
    return (a + b) * 0.5;
}

double degrees(double dy, double dx) {
    return std::atan2(dy, dx) * 180.0 / std::numbers::pi;
}

CropBox square_about(double cx, double cy, double size, double angle_deg) {
    return {.x = cx - size / 2.0, .y = cy - size / 2.0, .size = size, .angle_deg = angle_deg};
}

// A network's point, in its input's pixels, on the picture.
Point3 on_picture(std::span<const float> values, const Affine& map, double scale) {
    const double u = values[0];
    const double v = values[1];
    return {map[0] * u + map[1] * v + map[2], map[3] * u + map[4] * v + map[5], values[2] * scale};
}

// The square for a second look: round all points, level with the eyes.
CropBox square_round(const FaceLandmarks& face) {
    const auto [x0, x1] = std::ranges::minmax(face.mesh, {}, &Point3::x);
    const auto [y0, y1] = std::ranges::minmax(face.mesh, {}, &Point3::y);
    const Point3 level = face.mesh[kRightEye.outer] - face.mesh[kLeftEye.outer];
    const double extent = std::max(x1.x - x0.x, y1.y - y0.y);
    return square_about((x0.x + x1.x) / 2.0, (y0.y + y1.y) / 2.0, kMeshMargin * extent,
                        degrees(level.y, level.x));
}

// Extent of the framed points along an axis.
struct Range {
    double low = 0.0;
    double high = 0.0;
    [[nodiscard]] double extent() const { return high - low; }
    [[nodiscard]] double middle() const { return (low + high) / 2.0; }
};

Range range_along(const FaceLandmarks& face, double ax, double ay) {
    Range range{1e300, -1e300};
    for (const size_t i : kFramedPoints) {
        const double place = face.mesh[i].x * ax + face.mesh[i].y * ay;
        range.low = std::min(range.low, place);
        range.high = std::max(range.high, place);
    }
    return range;
}

double opening_of(const FaceLandmarks& face, const EyePoints& eye) {
    double sum = 0.0;
    for (const auto& [low, high] : eye.lids) sum += length(face.mesh[low] - face.mesh[high]);
    return sum / (length(face.mesh[eye.outer] - face.mesh[eye.inner]) + 1e-8);
}

}  // namespace

FaceLandmarker::FaceLandmarker(device::Device& device, const std::filesystem::path& mesh_file,
                               const std::filesystem::path& iris_file)
    : mesh_(device, mesh_file, {kMeshValues, 1}),
      iris_(device, iris_file, {kEyeContourValues, kIrisValues}) {}

FaceLandmarks FaceLandmarker::find_in(const RgbImage& picture, const CropBox& square) {
    const auto outputs = mesh_.run(picture, square, 0.0F);
    const Affine map = crop_to_picture(square, mesh_.side());
    FaceLandmarks face;
    face.presence = 1.0 / (1.0 + std::exp(-double{outputs[1][0]}));
    for (size_t i = 0; i < kMeshValues; i += 3) {
        face.mesh.push_back(on_picture(outputs[0].subspan(i, 3), map, square.size / mesh_.side()));
    }
    return face;
}

// The network knows one eye; the other is its mirror image, and the centre of an iris is the same.
Point3 FaceLandmarker::iris_between(const RgbImage& picture, const Point3& left_corner,
                                    const Point3& right_corner) {
    const Point3 across = right_corner - left_corner;
    const Point3 centre = middle(left_corner, right_corner);
    const CropBox square =
        square_about(centre.x, centre.y, kEyeMargin * std::hypot(across.x, across.y),
                     degrees(across.y, across.x));
    const auto outputs = iris_.run(picture, square, 0.0F);
    Point3 iris = on_picture(outputs[1].first(3), crop_to_picture(square, iris_.side()), 0.0);
    iris.z = centre.z;
    return iris;
}

FaceLandmarks FaceLandmarker::find(const RgbImage& picture, const Face& face) {
    const double extent = std::max(face.width(), face.height());
    const CropBox first = square_about(
        (face.x0 + face.x1) / 2.0, (face.y0 + face.y1) / 2.0, kMeshMargin * extent,
        degrees(face.right_eye.y - face.left_eye.y, face.right_eye.x - face.left_eye.x));
    return follow(picture, find_in(picture, first));
}

FaceLandmarks FaceLandmarker::follow(const RgbImage& picture, const FaceLandmarks& before) {
    FaceLandmarks found = find_in(picture, square_round(before));
    const auto& mesh = found.mesh;
    found.left_iris = iris_between(picture, mesh[kLeftEye.outer], mesh[kLeftEye.inner]);
    found.right_iris = iris_between(picture, mesh[kRightEye.inner], mesh[kRightEye.outer]);
    return found;
}

CropBox frame_face(const FaceLandmarks& face, const pack::FramingSpec& framing) {
    const auto& mesh = face.mesh;
    const Point3 eyes = middle(middle(mesh[kLeftEye.outer], mesh[kLeftEye.inner]),
                               middle(mesh[kRightEye.outer], mesh[kRightEye.inner]));
    const Point3 mouth = middle(mesh[kMouthLeft], mesh[kMouthRight]);
    const double span = std::hypot(mouth.x - eyes.x, mouth.y - eyes.y);
    // Unit vectors of the face: down from the eyes to the mouth, and across.
    const double down_x = span > 1e-3 ? (mouth.x - eyes.x) / span : 0.0;
    const double down_y = span > 1e-3 ? (mouth.y - eyes.y) / span : 1.0;
    const double across_x = down_y;
    const double across_y = -down_x;
    const Range across = range_along(face, across_x, across_y);
    const Range down = range_along(face, down_x, down_y);
    const double size = framing.scale * std::max(across.extent(), down.extent());
    const double a = across.middle() + framing.shift_x * size;
    const double d = down.middle() + framing.shift_y * size;
    return square_about(a * across_x + d * down_x, a * across_y + d * down_y, size,
                        framing.rotate ? degrees(across_y, across_x) : 0.0);
}

std::array<double, 2> eye_opening(const FaceLandmarks& face) {
    return {opening_of(face, kLeftEye), opening_of(face, kRightEye)};
}

std::array<double, 6> iris_movement(const FaceLandmarks& face, const CropBox& crop) {
    // Crop coordinates: the crop's own axes, in crop sizes. Differences only, so no shift.
    const double angle = crop.angle_deg * std::numbers::pi / 180.0;
    const auto in_crop = [&](const Point3& p) {
        return Point3{p.x * std::cos(angle) + p.y * std::sin(angle),
                      p.y * std::cos(angle) - p.x * std::sin(angle), p.z} *
               (1.0 / crop.size);
    };
    const auto movement = [&](const EyePoints& eye, const Point3& iris) {
        const Point3 outer = in_crop(face.mesh[eye.outer]);
        const Point3 inner = in_crop(face.mesh[eye.inner]);
        const Point3 off = in_crop(iris) - middle(outer, inner);
        return (unit(off) - unit(outer - inner)) * length(off);
    };
    const Point3 left = movement(kLeftEye, face.left_iris);
    const Point3 right = movement(kRightEye, face.right_iris);
    return {left.x, right.x, left.y, right.y, left.z, right.z};
}

double face_size_px(const FaceLandmarks& face) {
    return std::min(range_along(face, 1.0, 0.0).extent(), range_along(face, 0.0, 1.0).extent());
}

}  // namespace newscaster::registration
