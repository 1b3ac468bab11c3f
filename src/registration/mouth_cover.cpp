#include "registration/mouth_cover.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace newscaster::registration {

namespace {

// Points of FaceMesh.
constexpr size_t kUnderNose = 2;
constexpr size_t kForehead = 10;
constexpr size_t kChin = 152;
constexpr size_t kMouthLeft = 61;
constexpr size_t kMouthRight = 291;
// The inner lips: between them are teeth or not.
constexpr std::array<size_t, 20> kInnerLips{78,  191, 80,  81,  82,  13, 312, 311, 310, 415,
                                            308, 324, 318, 402, 317, 14, 87,  178, 88,  95};

constexpr double kReach = 0.8;       // of the mouth's width, from its middle
constexpr double kOtherColour = 32;  // levels, after the frame's light is taken out
constexpr double kPatch = 1.0 / 60;  // half the side of what is averaged, in face sizes

std::vector<size_t> points_round_mouth(const FaceLandmarks& face) {
    const auto& mesh = face.mesh;
    const double down_x = mesh[kChin].x - mesh[kForehead].x;
    const double down_y = mesh[kChin].y - mesh[kForehead].y;
    const double middle_x = (mesh[kMouthLeft].x + mesh[kMouthRight].x) / 2.0;
    const double middle_y = (mesh[kMouthLeft].y + mesh[kMouthRight].y) / 2.0;
    const double width = std::hypot(mesh[kMouthRight].x - mesh[kMouthLeft].x,
                                    mesh[kMouthRight].y - mesh[kMouthLeft].y);
    std::vector<size_t> points;
    for (size_t i = 0; i < mesh.size(); ++i) {
        const double below =
            (mesh[i].x - mesh[kUnderNose].x) * down_x + (mesh[i].y - mesh[kUnderNose].y) * down_y;
        const double distance = std::hypot(mesh[i].x - middle_x, mesh[i].y - middle_y);
        if (below < 0.0 || distance > kReach * width) continue;
        if (std::ranges::find(kInnerLips, i) == kInnerLips.end()) points.push_back(i);
    }
    return points;
}

std::array<uint8_t, 3> colour_at(const RgbImage& picture, const Point3& point, int reach) {
    const int x = std::clamp(static_cast<int>(point.x), reach, picture.width - 1 - reach);
    const int y = std::clamp(static_cast<int>(point.y), reach, picture.height - 1 - reach);
    std::array<int, 3> sum{};
    for (int row = y - reach; row <= y + reach; ++row) {
        for (int column = x - reach; column <= x + reach; ++column) {
            const uint8_t* pixel =
                &picture.pixels[3 * (static_cast<size_t>(row) * static_cast<size_t>(picture.width) +
                                     static_cast<size_t>(column))];
            for (size_t c = 0; c < 3; ++c) sum.at(c) += pixel[c];
        }
    }
    const int count = (2 * reach + 1) * (2 * reach + 1);
    std::array<uint8_t, 3> mean{};
    for (size_t c = 0; c < 3; ++c) mean.at(c) = static_cast<uint8_t>(sum.at(c) / count);
    return mean;
}

// Reorders.
int median(std::vector<int>& values) {
    const auto middle = values.begin() + std::ssize(values) / 2;
    std::ranges::nth_element(values, middle);
    return *middle;
}

}  // namespace

void MouthCover::add(const RgbImage& picture, const FaceLandmarks& face) {
    if (round_mouth_.empty()) round_mouth_ = points_round_mouth(face);
    const int most = (std::min(picture.width, picture.height) - 1) / 2;
    const int reach = std::min(static_cast<int>(std::lround(kPatch * face_size_px(face))), most);
    std::vector<Colour> colours;
    colours.reserve(face.mesh.size());
    for (const Point3& point : face.mesh) colours.push_back(colour_at(picture, point, reach));
    frames_.push_back(std::move(colours));
}

std::vector<double> MouthCover::shares() const {
    if (frames_.empty()) return {};
    const size_t points = frames_.front().size();
    std::vector<std::array<int, 3>> usual(points);
    std::vector<int> values;
    for (size_t point = 0; point < points; ++point) {
        for (size_t c = 0; c < 3; ++c) {
            values.clear();
            for (const auto& frame : frames_) values.push_back(frame[point][c]);
            usual[point].at(c) = median(values);
        }
    }
    std::vector<double> shares;
    for (const auto& frame : frames_) {
        std::array<int, 3> light{};
        for (size_t c = 0; c < 3; ++c) {
            values.clear();
            for (size_t i = 0; i < points; ++i) values.push_back(frame[i][c] - usual[i].at(c));
            light.at(c) = median(values);
        }
        const auto covered = std::ranges::count_if(round_mouth_, [&](size_t i) {
            for (size_t c = 0; c < 3; ++c) {
                if (std::abs(frame[i][c] - usual[i].at(c) - light.at(c)) > kOtherColour) {
                    return true;
                }
            }
            return false;
        });
        shares.push_back(static_cast<double>(covered) /
                         std::max(1.0, static_cast<double>(round_mouth_.size())));
    }
    return shares;
}

}  // namespace newscaster::registration
