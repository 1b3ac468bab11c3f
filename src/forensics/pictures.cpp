#include "forensics/pictures.h"

#include <algorithm>

namespace newscaster::forensics {

namespace {

constexpr int kGap = 4;
constexpr uint8_t kGapGrey = 255;

size_t index_of(const RgbImage& image, int x, int y) {
    return 3 * (static_cast<size_t>(y) * static_cast<size_t>(image.width) + static_cast<size_t>(x));
}

RgbImage blank(int width, int height, uint8_t grey) {
    return {
        width, height,
        std::vector<uint8_t>(static_cast<size_t>(width) * static_cast<size_t>(height) * 3, grey)};
}

}  // namespace

RgbImage enlarged(const RgbImage& image, int times) {
    RgbImage result = blank(image.width * times, image.height * times, 0);
    for (int y = 0; y < result.height; ++y) {
        for (int x = 0; x < result.width; ++x) {
            std::copy_n(
                image.pixels.begin() +
                    static_cast<std::ptrdiff_t>(index_of(image, x / times, y / times)),
                3, result.pixels.begin() + static_cast<std::ptrdiff_t>(index_of(result, x, y)));
        }
    }
    return result;
}

RgbImage reduced(const RgbImage& image, int longest) {
    const int side = std::max(image.width, image.height);
    const int block = (side + longest - 1) / longest;
    if (block <= 1) return image;
    RgbImage result = blank(image.width / block, image.height / block, 0);
    for (int y = 0; y < result.height; ++y) {
        for (int x = 0; x < result.width; ++x) {
            for (size_t c = 0; c < 3; ++c) {
                int sum = 0;
                for (int i = 0; i < block * block; ++i) {
                    sum +=
                        image.pixels[index_of(image, x * block + i % block, y * block + i / block) +
                                     c];
                }
                result.pixels[index_of(result, x, y) + c] =
                    static_cast<uint8_t>((sum + block * block / 2) / (block * block));
            }
        }
    }
    return result;
}

RgbImage difference_map(const RgbImage& reference, const RgbImage& picture, int times) {
    RgbImage result = picture;
    for (size_t i = 0; i < result.pixels.size(); ++i) {
        const int d = 128 + times * (int{picture.pixels[i]} - int{reference.pixels[i]});
        result.pixels[i] = static_cast<uint8_t>(std::clamp(d, 0, 255));
    }
    return result;
}

RgbImage montage(const std::vector<std::vector<RgbImage>>& rows) {
    size_t columns = 0;
    for (const auto& row : rows) columns = std::max(columns, row.size());
    if (columns == 0) return {};
    const RgbImage& first = rows.front().front();
    const int step_x = first.width + kGap;
    const int step_y = first.height + kGap;
    RgbImage result = blank(static_cast<int>(columns) * step_x - kGap,
                            static_cast<int>(rows.size()) * step_y - kGap, kGapGrey);
    for (size_t r = 0; r < rows.size(); ++r) {
        for (size_t c = 0; c < rows[r].size(); ++c) {
            const RgbImage& cell = rows[r][c];
            for (int y = 0; y < cell.height; ++y) {
                std::copy_n(cell.pixels.begin() + static_cast<std::ptrdiff_t>(index_of(cell, 0, y)),
                            3 * cell.width,
                            result.pixels.begin() + static_cast<std::ptrdiff_t>(index_of(
                                                        result, static_cast<int>(c) * step_x,
                                                        static_cast<int>(r) * step_y + y)));
            }
        }
    }
    return result;
}

}  // namespace newscaster::forensics
