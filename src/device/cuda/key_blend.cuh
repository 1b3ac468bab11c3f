// Frames in between out of keyframes. Compiled for the GPU at run time and, by a test, for the
// host; the arithmetic is that of warp/latent_blend.cpp and decode/crop_blend.cpp.

struct BlendPart {
    const float* values;
    const float* shares;    // square grid
    const float* x_offset;  // square grids, of pictures that move
    const float* y_offset;
};

struct BlendView {
    BlendPart parts[6];
    float* target;
    int count;
    int width;   // of a plane
    int height;
    int planes;
    int share_grid;
    int offset_grid;
};

// Bilinear value of a grid at the centre of a cell of `width` x `height`; beyond the outermost
// grid centres the value stays.
__device__ inline float grid_value(const float* grid, int size, int x, int y, int width,
                                   int height) {
    const float last = static_cast<float>(size - 1);
    const float across = (static_cast<float>(x) + 0.5F) * static_cast<float>(size) /
                             static_cast<float>(width) - 0.5F;
    const float down = (static_cast<float>(y) + 0.5F) * static_cast<float>(size) /
                           static_cast<float>(height) - 0.5F;
    const float at_x = across < 0.0F ? 0.0F : across > last ? last : across;
    const float at_y = down < 0.0F ? 0.0F : down > last ? last : down;
    const int left = static_cast<int>(at_x);
    const int top = static_cast<int>(at_y);
    const int right = left + 1 < size ? left + 1 : left;
    const int bottom = top + 1 < size ? top + 1 : top;
    const float wx = at_x - static_cast<float>(left);
    const float wy = at_y - static_cast<float>(top);
    const float from = grid[top * size + left] * (1.0F - wy) + grid[bottom * size + left] * wy;
    const float to = grid[top * size + right] * (1.0F - wy) + grid[bottom * size + right] * wy;
    return from * (1.0F - wx) + to * wx;
}

// One place of some planes, from plane `first` on in steps of `step`.
__device__ inline void mix_place(const BlendView& view, int place, int first, int step) {
    const int cells = view.width * view.height;
    float shares[6];
    for (int i = 0; i < view.count; ++i) {
        shares[i] = grid_value(view.parts[i].shares, view.share_grid, place % view.width,
                               place / view.width, view.width, view.height);
    }
    for (int plane = first; plane < view.planes; plane += step) {
        const long long at = static_cast<long long>(plane) * cells + place;
        float sum = 0.0F;
        for (int i = 0; i < view.count; ++i) sum += shares[i] * view.parts[i].values[at];
        view.target[at] = sum;
    }
}

// Weights of the pixels at -1, 0, 1, 2 for a position `f` after 0 (Catmull & Rom 1974).
__device__ inline void catmull_rom(float f, float* weights) {
    const float f2 = f * f;
    const float f3 = f2 * f;
    weights[0] = -0.5F * f + f2 - 0.5F * f3;
    weights[1] = 1.0F - 2.5F * f2 + 1.5F * f3;
    weights[2] = 0.5F * f + 2.0F * f2 - 1.5F * f3;
    weights[3] = -0.5F * f2 + 0.5F * f3;
}

__device__ inline int kept_within(int at, int size) {
    return at < 0 ? 0 : at >= size ? size - 1 : at;
}

// One pixel, all three colours; planes are square.
__device__ inline void move_pixel(const BlendView& view, int pixel) {
    const int size = view.width;
    const int x = pixel % size;
    const int y = pixel / size;
    const float last = static_cast<float>(size - 1);
    float colour[3] = {0.0F, 0.0F, 0.0F};
    for (int i = 0; i < view.count; ++i) {
        const BlendPart& part = view.parts[i];
        const float share = grid_value(part.shares, view.share_grid, x, y, size, size);
        const float to_x = static_cast<float>(x) +
                           grid_value(part.x_offset, view.offset_grid, x, y, size, size);
        const float to_y = static_cast<float>(y) +
                           grid_value(part.y_offset, view.offset_grid, x, y, size, size);
        const float at_x = to_x < 0.0F ? 0.0F : to_x > last ? last : to_x;
        const float at_y = to_y < 0.0F ? 0.0F : to_y > last ? last : to_y;
        const int left = static_cast<int>(at_x);
        const int top = static_cast<int>(at_y);
        float across[4];
        float down[4];
        catmull_rom(at_x - static_cast<float>(left), across);
        catmull_rom(at_y - static_cast<float>(top), down);
        for (int row = 0; row < 4; ++row) {
            const int from = kept_within(top + row - 1, size) * size;
            for (int column = 0; column < 4; ++column) {
                const float weight = share * down[row] * across[column];
                const float* value = part.values + from + kept_within(left + column - 1, size);
                for (int c = 0; c < 3; ++c) colour[c] += weight * value[c * size * size];
            }
        }
    }
    for (int c = 0; c < 3; ++c) {
        const float value = colour[c];
        view.target[c * size * size + pixel] = value < 0.0F ? 0.0F : value > 1.0F ? 1.0F : value;
    }
}
