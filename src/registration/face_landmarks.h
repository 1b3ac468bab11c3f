// Points of one face: FaceMesh, 468 points (Kartynnik et al. 2019, "Real-time Facial Surface
// Geometry from Monocular Video on Mobile GPUs"), and Iris (Ablavatski et al. 2020).
#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <vector>

#include "pack/manifest.h"
#include "registration/face_detector.h"

namespace newscaster::registration {

struct Point3 {
    double x = 0.0;  // picture pixels
    double y = 0.0;
    double z = 0.0;  // into the picture, in the same unit; its origin is arbitrary
};

// Left and right are the picture's.
struct FaceLandmarks {
    static constexpr size_t kMeshPoints = 468;
    std::vector<Point3> mesh;  // kMeshPoints, MediaPipe's order
    Point3 left_iris;          // centre
    Point3 right_iris;
    double presence = 0.0;  // 0..1: that this is a face at all
};

class FaceLandmarker {
  public:
    // face_landmark.tflite and iris_landmark.tflite. Throws Error(bad_pack).
    FaceLandmarker(device::Device& device, const std::filesystem::path& mesh_file,
                   const std::filesystem::path& iris_file);

    // Points of a face that the detector found.
    [[nodiscard]] FaceLandmarks find(const RgbImage& picture, const Face& face);

    // Points of a face that was here a picture ago.
    [[nodiscard]] FaceLandmarks follow(const RgbImage& picture, const FaceLandmarks& before);

  private:
    [[nodiscard]] FaceLandmarks find_in(const RgbImage& picture, const CropBox& square);
    [[nodiscard]] Point3 iris_between(const RgbImage& picture, const Point3& left_corner,
                                      const Point3& right_corner);

    PictureNetwork mesh_;
    PictureNetwork iris_;
};

// How a pack wants its faces cut, and what the motion generator wants to know of the eyes.

// Square with the face's points in it: `framing` times their extent along the face's own axes (eyes
// to mouth), shifted by its shares of the square. The angle is 0 unless framing.rotate holds.
[[nodiscard]] CropBox frame_face(const FaceLandmarks& face, const pack::FramingSpec& framing);

// Distances of three pairs of lid points, summed, over the eye's width: left, right.
[[nodiscard]] std::array<double, 2> eye_opening(const FaceLandmarks& face);

// Movement of the irises in the crop, in crop sizes: x left, x right, y left, ... With c the middle
// of the eye's corners, b the iris and e the unit vector from the inner to the outer corner:
// (unit(b - c) - e) |b - c|.
[[nodiscard]] std::array<double, 6> iris_movement(const FaceLandmarks& face, const CropBox& crop);

// Smaller side of the box round the face's points from brows to chin, pixels.
[[nodiscard]] double face_size_px(const FaceLandmarks& face);

}  // namespace newscaster::registration
