// Paste-back of one 2x2 block of ROI pixels. Compiled for the GPU at run time and, by a test, for
// the host. The compositor's row kernels define the arithmetic: every byte equals theirs.

struct RoiView {
    int width;
    int height;
    int crop_size;
    int separable;
    const unsigned int* background;
    const int* column_tap;
    const int* column_weights;
    const int* row_tap;
    const int* mix_weights;
    const int* tap;
    const int* upper;
    const int* lower;
};

__device__ inline int low_half(int pair) {
    return static_cast<short>(pair & 0xffff);
}

__device__ inline int high_half(int pair) {
    return pair >> 16;
}

// 0..32640; NaN and negative values become 0, values above 1 become 1.
__device__ inline int crop_level(const float* plane, int at) {
    const float value = plane[at];
    const float positive = value > 0.0F ? value : 0.0F;
    return __float2int_rn((positive < 1.0F ? positive : 1.0F) * 32640.0F);
}

// One colour of one pixel, 0..255.
__device__ inline int blend(const RoiView& roi, const float* plane, int row, int column,
                            int background) {
    const int pixel = row * roi.width + column;
    int seen;
    int alpha;
    if (roi.separable) {
        const int weights = roi.column_weights[column];
        const int at = roi.row_tap[row] * roi.crop_size + roi.column_tap[column];
        const int below = at + roi.crop_size;
        const int top = (crop_level(plane, at) * low_half(weights) +
                         crop_level(plane, at + 1) * high_half(weights) + (1 << 13)) >> 14;
        const int bottom = (crop_level(plane, below) * low_half(weights) +
                            crop_level(plane, below + 1) * high_half(weights) + (1 << 13)) >> 14;
        const int mix = roi.mix_weights[pixel];
        seen = top * low_half(mix) + bottom * high_half(mix);
        alpha = low_half(mix) + high_half(mix);
    } else {
        const int at = roi.tap[pixel];
        const int below = at + roi.crop_size;
        const int upper = roi.upper[pixel];
        const int lower = roi.lower[pixel];
        seen = crop_level(plane, at) * low_half(upper) +
               crop_level(plane, at + 1) * high_half(upper) +
               crop_level(plane, below) * low_half(lower) +
               crop_level(plane, below + 1) * high_half(lower);
        alpha = low_half(upper) + high_half(upper) + low_half(lower) + high_half(lower);
    }
    return (seen + background * (((1 << 14) - alpha) << 7) + (1 << 20)) >> 21;
}

// block: in rows of width / 2. crop: planar RGB. nv12: luma rows, then rows of Cb, Cr pairs.
__device__ inline void paste_block(const RoiView& roi, int block, const float* crop,
                                   unsigned char* nv12) {
    const int column = block % (roi.width / 2) * 2;
    const int row = block / (roi.width / 2) * 2;
    const int plane = roi.crop_size * roi.crop_size;
    int red = 0;
    int green = 0;
    int blue = 0;
    for (int i = 0; i < 4; ++i) {
        const int y = row + i / 2;
        const int x = column + i % 2;
        const unsigned int behind = roi.background[y * roi.width + x];
        const int r = blend(roi, crop, y, x, behind & 0xffU);
        const int g = blend(roi, crop + plane, y, x, behind >> 8 & 0xffU);
        const int b = blend(roi, crop + 2 * plane, y, x, behind >> 16 & 0xffU);
        nv12[y * roi.width + x] = static_cast<unsigned char>(
            (5983 * r + 20127 * g + 2032 * b + (16 << 15) + (1 << 14)) >> 15);
        red += r;
        green += g;
        blue += b;
    }
    unsigned char* chroma = nv12 + roi.height * roi.width + row / 2 * roi.width + column;
    const int bias = (128 << 17) + (1 << 16);
    chroma[0] = static_cast<unsigned char>((-3298 * red - 11094 * green + 14392 * blue + bias) >> 17);
    chroma[1] = static_cast<unsigned char>((14392 * red - 13072 * green - 1320 * blue + bias) >> 17);
}
