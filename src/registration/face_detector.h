// Where the faces of a picture are: BlazeFace, short range (MediaPipe; Bazarevsky et al. 2019,
// "BlazeFace: Sub-millisecond Neural Face Detection on Mobile GPUs").
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

#include "registration/picture_network.h"

namespace newscaster::registration {

struct Point {
    double x = 0.0;  // picture pixels
    double y = 0.0;
};

struct Face {
    double x0 = 0.0;  // box from the brows to the chin, picture pixels; may stick out
    double y0 = 0.0;
    double x1 = 0.0;
    double y1 = 0.0;
    double score = 0.0;  // 0..1
    Point left_eye;      // on the picture's left
    Point right_eye;

    [[nodiscard]] double width() const { return x1 - x0; }
    [[nodiscard]] double height() const { return y1 - y0; }
    [[nodiscard]] double area() const { return width() * height(); }
};

// Which of several faces.
enum class FaceChoice { largest, most_central };

class FaceDetector {
  public:
    // file: face_detection_short_range.tflite. Throws Error(bad_pack).
    FaceDetector(device::Device& device, const std::filesystem::path& file);

    // Calls `accept` with the faces of one search, largest first, until it returns true or nothing
    // is left to search. The whole picture is searched first; when nothing is found, the picture
    // with room around it (a face that fills it), then its parts, down to an eighth or 256 pixels
    // (small faces). Every face is looked at twice, the second time closely.
    void detect(const RgbImage& picture,
                const std::function<bool(const std::vector<Face>&)>& accept);

  private:
    void detect_in(const RgbImage& picture, const CropBox& square, double min_score,
                   std::vector<Face>& faces);
    [[nodiscard]] std::optional<Face> look_again(const RgbImage& picture, const Face& face);
    [[nodiscard]] std::vector<Face> detect_level(const RgbImage& picture, double side);

    PictureNetwork network_;
    std::vector<Point> anchors_;  // centres, shares of the square
};

// Joins boxes of one face to their mean, weighted by score: those that overlap the best one by more
// than 0.3 (intersection over union). Largest first.
[[nodiscard]] std::vector<Face> join_overlapping(std::vector<Face> faces);

// Index of the chosen face; faces largest first and not empty. Faces within a tenth of the largest
// area count as equally large: then the most central one is taken.
[[nodiscard]] size_t choose_face(const std::vector<Face>& faces, FaceChoice choice, int width,
                                 int height);

}  // namespace newscaster::registration
