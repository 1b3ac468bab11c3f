#include "forensics/exhibits.h"

#include <fmt/format.h>

#include <algorithm>

#include "forensics/pictures.h"
#include "media/image.h"

namespace newscaster::forensics {

namespace {

constexpr int kLongestFace = 640;  // of a cell
constexpr int kMouthTimes = 2;
constexpr int kDifferenceTimes = 5;

// A row of the pictures' part, and below it what differs from the first.
RgbImage compared(const std::vector<media::VideoPicture>& pictures, const Box& box, int times) {
    std::vector<RgbImage> parts;
    std::vector<RgbImage> differences;
    for (const auto& picture : pictures) {
        parts.push_back(media::to_rgb(picture, box));
        differences.push_back(difference_map(parts.front(), parts.back(), kDifferenceTimes));
    }
    const auto shown = [&](std::vector<RgbImage>& images) {
        for (RgbImage& image : images) {
            image = times > 1 ? enlarged(image, times) : reduced(image, kLongestFace);
        }
    };
    shown(parts);
    shown(differences);
    return montage({parts, differences});
}

}  // namespace

std::vector<Exhibit> write_exhibits(const std::filesystem::path& folder,
                                    const std::string& reference,
                                    const std::vector<std::string>& tests, const Regions& regions,
                                    const std::vector<int64_t>& frames) {
    std::vector<int64_t> wanted = frames;
    std::ranges::sort(wanted);
    wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
    std::vector<Exhibit> exhibits;
    VideoSet videos(reference, tests);
    for (int64_t index = 0; exhibits.size() < wanted.size(); ++index) {
        const auto pictures = videos.next();
        if (pictures.empty()) break;
        if (index != wanted[exhibits.size()]) continue;
        const Box canvas{0, 0, pictures.front().width, pictures.front().height};
        Exhibit exhibit{.frame = index};
        exhibit.face = folder / fmt::format("frame_{:06}_face.png", index);
        media::write_png(exhibit.face, compared(pictures, regions.face.value_or(canvas), 1));
        if (regions.mouth) {
            exhibit.mouth = folder / fmt::format("frame_{:06}_mouth.png", index);
            media::write_png(exhibit.mouth, compared(pictures, *regions.mouth, kMouthTimes));
        }
        exhibits.push_back(std::move(exhibit));
    }
    return exhibits;
}

}  // namespace newscaster::forensics
