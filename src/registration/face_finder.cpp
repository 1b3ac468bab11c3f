#include "registration/face_finder.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "newscaster/error.h"

namespace newscaster::registration {

namespace {

constexpr double kMinPresence = 0.5;

// "X,Y", or nothing.
std::optional<Point> parse_point(const std::string& choice) {
    const size_t comma = choice.find(',');
    if (comma == std::string::npos) return std::nullopt;
    Point point;
    const char* const end = choice.data() + choice.size();
    const auto across = std::from_chars(choice.data(), choice.data() + comma, point.x);
    const auto down = std::from_chars(choice.data() + comma + 1, end, point.y);
    if (across.ec != std::errc() || across.ptr != choice.data() + comma || down.ec != std::errc() ||
        down.ptr != end || !std::isfinite(point.x + point.y)) {
        return std::nullopt;
    }
    return point;
}

const FoundFace& nearest_to(const Point& point, const std::vector<FoundFace>& faces) {
    return *std::ranges::min_element(faces, {}, [&](const FoundFace& found) {
        const Face& face = found.face;
        return std::hypot((face.x0 + face.x1) / 2.0 - point.x, (face.y0 + face.y1) / 2.0 - point.y);
    });
}

size_t parse_number(const std::string& choice) {
    size_t number = 0;
    const char* const end = choice.data() + choice.size();
    const auto [rest, fault] = std::from_chars(choice.data(), end, number);
    if (fault != std::errc() || rest != end || number == 0) {
        throw Error(
            ErrorCode::bad_input,
            fmt::format("face: found \"{}\", wanted largest, center, a number from 1, or X,Y",
                        choice));
    }
    return number;
}

}  // namespace

FaceFinder::FaceFinder(device::Device& device, const std::filesystem::path& folder)
    : detector_(device, folder / "face_detection_short_range.tflite"),
      landmarker_(device, folder / "face_landmark.tflite", folder / "iris_landmark.tflite") {}

std::vector<FoundFace> FaceFinder::find(const RgbImage& picture) {
    std::vector<FoundFace> found;
    const auto keep = [&](const Face& face) {
        FaceLandmarks landmarks = landmarker_.find(picture, face);
        if (landmarks.presence < kMinPresence) return;
        found.push_back({.face = face, .landmarks = std::move(landmarks)});
    };
    detector_.detect(picture, [&](const std::vector<Face>& candidates) {
        std::ranges::for_each(candidates, keep);
        return !found.empty();
    });
    return found;
}

std::optional<FaceLandmarks> FaceFinder::follow(const RgbImage& picture,
                                                const FaceLandmarks& before) {
    FaceLandmarks landmarks = landmarker_.follow(picture, before);
    if (landmarks.presence < kMinPresence) return std::nullopt;
    return landmarks;
}

const FoundFace& choose_face(const std::vector<FoundFace>& faces, const std::string& choice,
                             const RgbImage& picture, const std::string& name) {
    const bool by_word = choice == "largest" || choice == "center";
    const auto point = parse_point(choice);
    const size_t number = by_word || point ? 1 : parse_number(choice);
    if (faces.empty()) {
        throw Error(ErrorCode::bad_input,
                    fmt::format("{}: no face was found; give the crop box (--crop), or a picture "
                                "in which the face is larger and looks at the camera",
                                name));
    }
    if (number > faces.size()) {
        throw Error(ErrorCode::bad_input, fmt::format("face: found {}, wanted 1 to {}, the faces "
                                                      "in {}",
                                                      number, faces.size(), name));
    }
    if (point) return nearest_to(*point, faces);
    if (!by_word) return faces[number - 1];
    std::vector<Face> boxes;
    std::ranges::transform(faces, std::back_inserter(boxes), &FoundFace::face);
    const auto how = choice == "center" ? FaceChoice::most_central : FaceChoice::largest;
    return faces[choose_face(boxes, how, picture.width, picture.height)];
}

}  // namespace newscaster::registration
