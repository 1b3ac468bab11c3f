// The faces of a picture, found and measured.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "registration/face_detector.h"
#include "registration/face_landmarks.h"

namespace newscaster::registration {

struct FoundFace {
    Face face;
    FaceLandmarks landmarks;
};

// Use from one thread at a time.
class FaceFinder {
  public:
    // folder: holds face_detection_short_range.tflite, face_landmark.tflite and
    // iris_landmark.tflite. Throws Error(bad_pack) naming what is missing. The device must outlive
    // this object.
    FaceFinder(device::Device& device, const std::filesystem::path& folder);

    // Largest first; empty when there is none. A face is what both the detector and the landmark
    // network take for one.
    [[nodiscard]] std::vector<FoundFace> find(const RgbImage& picture);

    // The face that was here a picture ago; nullopt when it is lost.
    [[nodiscard]] std::optional<FaceLandmarks> follow(const RgbImage& picture,
                                                      const FaceLandmarks& before);

  private:
    FaceDetector detector_;
    FaceLandmarker landmarker_;
};

// The face that `choice` means: "largest" (among equally large ones, the most central), "center",
// "1" for the largest, "2" for the next ..., or "X,Y", the one whose middle is nearest to this
// pixel. Throws Error(bad_input) for another word, a number that there is no face for, and when
// there is no face at all; `name` is the picture's.
[[nodiscard]] const FoundFace& choose_face(const std::vector<FoundFace>& faces,
                                           const std::string& choice, const RgbImage& picture,
                                           const std::string& name);

}  // namespace newscaster::registration
