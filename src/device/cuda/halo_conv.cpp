#include "device/cuda/halo_conv.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <set>

#include "device/cuda/emitter.h"
#include "device/cuda/kernel_texts.h"

namespace newscaster::device::cuda {

namespace {

constexpr int64_t kGroups = 2;               // of four warps that multiply
constexpr int64_t kSharedBytes = 227 << 10;  // what a block may have
constexpr int64_t kReservedBytes = 2 << 10;  // alignment and barriers
constexpr int64_t kMostStages = 12;
constexpr int64_t kShortTile = 20;  // stages
constexpr int64_t kWidest = 144;    // output channels of a tile
constexpr int64_t kUsualWidth = 128;
constexpr int64_t kNarrow = 96;  // up to here a group has room for four parts
constexpr int64_t kManyTiles = 96;
constexpr int64_t kSide = 8;  // a part of 64 positions is a square
constexpr int64_t kFewestMacs = int64_t{1} << 26;
constexpr int64_t kShortestSum = 512;  // taps times channels
constexpr unsigned kThreads = 384;

// Positions first .. first + positions - 1 of every `upsample` along an axis: they read the same
// `taps` of the coarse input, each the sum of some of the kernel's.
struct Phase {
    int64_t first = 0, positions = 1;
    int64_t tap = 0;                         // the first one's place in the halo
    std::vector<std::vector<int64_t>> taps;  // per tap: those of the kernel
    [[nodiscard]] int64_t count() const { return static_cast<int64_t>(taps.size()); }
};

std::vector<Phase> phases_of(int64_t taps, int64_t pad, int64_t upsample) {
    std::vector<Phase> phases;
    for (int64_t position = 0; position < upsample; ++position) {
        Phase phase;
        phase.first = position;
        // Cells relative to this one, moved so that none is negative.
        const auto cell = [&](int64_t tap) {
            return (position + tap - pad + upsample * taps) / upsample - taps;
        };
        phase.tap = cell(0) + (upsample == 1 ? pad : (pad + upsample - 1) / upsample);
        phase.taps.resize(static_cast<size_t>(cell(taps - 1) - cell(0) + 1));
        for (int64_t tap = 0; tap < taps; ++tap) {
            phase.taps[static_cast<size_t>(cell(tap) - cell(0))].push_back(tap);
        }
        if (!phases.empty() && phases.back().taps == phase.taps && phases.back().tap == phase.tap) {
            ++phases.back().positions;
        } else {
            phases.push_back(std::move(phase));
        }
    }
    return phases;
}

struct Geometry {
    int64_t pictures = 0, depth = 0, height = 0, width = 0;  // of the result
    int64_t input_depth = 0;
    int64_t channels = 0, outputs = 0;     // as stored
    std::array<int64_t, 3> taps{}, pad{};  // z, y, x
    int64_t step = 1;                      // in y and x
    int64_t upsample = 1;  // the result is this much larger in y and x than the tiles' grid

    int64_t row_bytes = 128;  // of one position's channels in shared memory
    int64_t parts = 2, parts_x = 2;
    int64_t mma_width = 0;  // output channels of a tile
    int64_t taps_per_stage = 1;
    int64_t stages = 0;
    std::vector<Phase> rows, columns;  // of an upsampled input; one whole kernel otherwise

    [[nodiscard]] int64_t tile_width() const { return parts_x * kSide; }
    [[nodiscard]] int64_t tile_height() const { return kGroups * (parts / parts_x) * kSide; }
    [[nodiscard]] int64_t halo(int64_t tile, int64_t axis_taps) const {
        return tile + (axis_taps + step - 1) / step - 1;
    }
    [[nodiscard]] int64_t halo_width() const { return halo(tile_width(), taps[2]); }
    [[nodiscard]] int64_t halo_height() const { return halo(tile_height(), taps[1]); }
    [[nodiscard]] int64_t box_bytes() const { return halo_width() * halo_height() * row_bytes; }
    // The swizzle pattern repeats every 1024 bytes at most.
    [[nodiscard]] int64_t part_bytes() const { return (box_bytes() + 1023) / 1024 * 1024; }
    [[nodiscard]] int64_t input_bytes() const { return step * step * part_bytes(); }
    [[nodiscard]] int64_t stage_bytes() const { return taps_per_stage * mma_width * row_bytes; }
    [[nodiscard]] int64_t row_channels() const { return row_bytes / 2; }
    [[nodiscard]] int64_t chunks() const {
        return (channels + row_channels() - 1) / row_channels();
    }
    [[nodiscard]] int64_t last_steps() const {
        return (channels - (chunks() - 1) * row_channels() + 15) / 16;
    }
    [[nodiscard]] int64_t groups() const { return outputs / mma_width; }  // of output channels
    [[nodiscard]] int64_t output_tiles() const {
        return groups() * static_cast<int64_t>(rows.size() * columns.size());
    }
    [[nodiscard]] int64_t tiles() const {
        return pictures * depth * (height / tile_height()) * (width / tile_width()) *
               output_tiles();
    }
    // Per output tile: its phases, and how many stages of weights it has per tap in depth.
    [[nodiscard]] const Phase& row_of(int64_t tile) const {
        return rows[static_cast<size_t>(tile / groups()) / columns.size()];
    }
    [[nodiscard]] const Phase& column_of(int64_t tile) const {
        return columns[static_cast<size_t>(tile / groups()) % columns.size()];
    }
    [[nodiscard]] int64_t stages_per_chunk(int64_t tile) const {
        return row_of(tile).count() * column_of(tile).count() / taps_per_stage;
    }
    [[nodiscard]] int64_t stages_per_depth(int64_t tile) const {
        return chunks() * stages_per_chunk(tile);
    }
    // By how many stages one group may lead: fewer than there are buffers, and within the first
    // input, since the next ones may wait for the other group. Long sums do without: there is
    // little else to do, and the buffers keep the copies going.
    [[nodiscard]] int64_t lead() const {
        int64_t most = stages / 2;
        for (int64_t tile = 0; tile < output_tiles(); ++tile) {
            if (taps[0] * stages_per_depth(tile) > kShortTile) return 0;
            most = std::min(most, stages_per_chunk(tile));
        }
        return most;
    }
};

std::array<int64_t, 3> three(const std::vector<int64_t>& values, int64_t filler) {
    return values.size() == 2 ? std::array{filler, values[0], values[1]}
                              : std::array{values[0], values[1], values[2]};
}

// Fills the choices; false when the shape does not suit.
bool choose(Geometry& g) {
    g.mma_width = g.outputs <= kWidest ? g.outputs : kUsualWidth;
    if (g.outputs % g.mma_width != 0) return false;
    g.rows = phases_of(g.taps[1], g.pad[1], g.upsample);
    g.columns = phases_of(g.taps[2], g.pad[2], g.upsample);
    if (g.upsample > 1) {
        // From here on in terms of the coarse input.
        for (const size_t axis : {1U, 2U}) {
            const int64_t margin = (g.pad[axis] + g.upsample - 1) / g.upsample;
            g.pad[axis] = margin;
            g.taps[axis] = 2 * margin + 1;
        }
    }
    // Many positions to a tile make more of its weights, as long as there are enough tiles.
    const int64_t large = g.pictures * g.depth * g.height * g.width / (8 * kSide * kSide);
    const bool wide = g.mma_width <= kNarrow && g.width % (4 * kSide) == 0 && large >= kManyTiles;
    g.parts = wide ? 4 : 2;
    g.parts_x = g.parts;
    if (g.width % g.tile_width() != 0 || g.height % g.tile_height() != 0) return false;
    for (g.row_bytes = 128; g.row_bytes >= 32; g.row_bytes /= 2) {
        g.taps_per_stage = g.row_bytes == 128 || g.upsample > 1 ? 1 : g.taps[2];
        const int64_t left = kSharedBytes - kReservedBytes - 2 * g.input_bytes();
        g.stages = std::min(kMostStages, left / g.stage_bytes());
        if (left > 0 && g.stages * g.taps_per_stage >= 4 && g.stages >= 2) return true;
    }
    return false;
}

std::optional<Geometry> geometry_of(const GraphIr& graph, const Node& node, const ConvStep& conv) {
    const Window& w = conv.window;
    const Shape& x = graph.values[node.input(0)].shape;
    const Shape& y = graph.values[node.outputs[0]].shape;
    if (w.dims() < 2) return std::nullopt;
    const auto stride = three(w.stride, 1);
    const auto dilation = three(w.dilation, 1);
    if (dilation != std::array<int64_t, 3>{1, 1, 1}) return std::nullopt;
    if (stride[0] != 1 || stride[1] != stride[2] || stride[1] > 2) return std::nullopt;
    Geometry g;
    g.taps = three(w.kernel, 1);
    g.pad = three(w.pad_begin, 0);
    g.step = stride[1];
    g.upsample = conv.upsample;
    const size_t rank = y.size();
    g.pictures = y[0];
    g.depth = rank == 5 ? y[2] : 1;
    g.height = y[rank - 2] / g.upsample;
    g.width = y[rank - 1] / g.upsample;
    g.outputs = padded_channels(y[1]);
    g.channels = padded_channels(x[1]);
    g.input_depth = rank == 5 ? x[2] : 1;
    const int64_t length = g.taps[0] * g.taps[1] * g.taps[2] * g.channels;
    // Nothing to share between taps: the libraries do as well.
    if (g.taps[0] * g.taps[1] * g.taps[2] == 1) return std::nullopt;
    const int64_t positions = element_count(y) / y[1];
    if (length < kShortestSum || positions * g.outputs * length < kFewestMacs) return std::nullopt;
    if (!choose(g)) return std::nullopt;
    return g;
}

// Output channel of a tile's column. Each thread of four holds two neighbouring columns in eight;
// in this order the columns of four such groups are neighbouring channels.
int64_t channel_of(int64_t column, int64_t mma_width) {
    const int64_t block = column / 8;
    const int64_t blocks = std::min<int64_t>(4, mma_width / 8 - block / 4 * 4);
    return block / 4 * 32 + 2 * blocks * (column % 8 / 2) + 2 * (block % 4) + column % 2;
}

// The same for tiles of the first and second half of all channels: 64 of each.
int64_t paired_channel_of(int64_t column, int64_t tile, const Geometry& g) {
    const int64_t half = g.mma_width / 2;
    return column / half * (g.outputs / 2) + tile * half + channel_of(column % half, half);
}

// Adds channels `first` and on of one tap. weights: f16 [K, taps, C]; tap: of all K times taps.
void add_row(std::vector<float>& row, const Tensor& weights, int64_t tap, int64_t first) {
    const std::byte* from = weights.data() + (tap * weights.shape()[2] + first) * 2;
    for (float& sum : row) {
        uint16_t bits = 0;
        std::memcpy(&bits, from, sizeof(bits));
        sum += half_to_float(bits);
        from += sizeof(bits);
    }
}

// weights: f16 [K, taps, C]. In the order in which the kernel loads them, swizzled.
Tensor pack_weights(const Tensor& weights, const Geometry& g, const std::array<int64_t, 3>& taps,
                    bool paired) {
    int64_t stages = 0;
    for (int64_t tile = 0; tile < g.output_tiles(); ++tile) {
        stages += g.taps[0] * g.stages_per_depth(tile);
    }
    Tensor packed(DType::u8, {stages * g.stage_bytes()});
    std::byte* target = packed.data();
    const int64_t mask = g.row_bytes / 16 - 1;
    const int64_t stored = weights.shape()[2];
    const auto pack_tap = [&](int64_t tile, int64_t z, int64_t chunk,
                              const std::vector<int64_t>& rows,
                              const std::vector<int64_t>& columns) {
        const int64_t first = chunk * g.row_channels();
        const int64_t count = std::min(g.row_channels(), stored - first);
        const int64_t group = tile % g.groups();
        for (int64_t column = 0; column < g.mma_width; ++column) {
            const int64_t channel = paired ? paired_channel_of(column, group, g)
                                           : group * g.mma_width + channel_of(column, g.mma_width);
            std::vector<float> row(static_cast<size_t>(count));
            for (const int64_t y : rows) {
                for (const int64_t x : columns) {
                    add_row(row, weights, ((channel * taps[0] + z) * taps[1] + y) * taps[2] + x,
                            first);
                }
            }
            for (int64_t at = 0; at < count; ++at) {
                const int64_t place = column * g.row_bytes + at * 2;
                const uint16_t bits = float_to_half(row[static_cast<size_t>(at)]);
                std::memcpy(target + (place ^ ((place >> 7 & mask) << 4)), &bits, sizeof(bits));
            }
        }
        target += g.mma_width * g.row_bytes;
    };
    for (int64_t tile = 0; tile < g.output_tiles(); ++tile) {
        for (int64_t z = 0; z < g.taps[0]; ++z) {
            for (int64_t chunk = 0; chunk < g.chunks(); ++chunk) {
                for (const auto& rows : g.row_of(tile).taps) {
                    for (const auto& columns : g.column_of(tile).taps) {
                        pack_tap(tile, z, chunk, rows, columns);
                    }
                }
            }
        }
    }
    return packed;
}

std::string constants(const Geometry& g, const std::string& name) {
    const uint64_t layout = g.row_bytes == 128 ? 1 : g.row_bytes == 64 ? 2 : 3;
    const auto form = [&](int64_t group_bytes) {
        return layout << 62U | static_cast<uint64_t>(group_bytes >> 4) << 32U | uint64_t{1} << 16U;
    };
    std::string text = fmt::format("__constant__ int {}_taps[{}][9] = {{", name, g.output_tiles());
    int64_t stage = 0;
    for (int64_t tile = 0; tile < g.output_tiles(); ++tile) {
        const Phase& row = g.row_of(tile);
        const Phase& column = g.column_of(tile);
        text += fmt::format("{{{}, {}, {}, {}, {}, {}, {}, {}, {}}},", row.tap, row.count(),
                            column.tap, column.count(), stage, row.first, row.positions,
                            column.first, column.positions);
        stage += g.taps[0] * g.stages_per_depth(tile);
    }
    text += fmt::format("}};\nstruct {}_c {{\n", name);
    const auto add = [&](const char* what, int64_t value) {
        text += fmt::format("static constexpr int {} = {};\n", what, value);
    };
    add("kStep", g.step);
    add("kRowBytes", g.row_bytes);
    add("kHaloWidth", g.halo_width());
    add("kBoxBytes", g.box_bytes());
    add("kPartBytes", g.part_bytes());
    add("kInputBytes", g.input_bytes());
    add("kParts", g.parts);
    add("kPartsX", g.parts_x);
    add("kWidth", g.mma_width);
    add("kChunks", g.chunks());
    add("kLastSteps", g.last_steps());
    add("kTapsPerStage", g.taps_per_stage);
    add("kStageBytes", g.stage_bytes());
    add("kStages", g.stages);
    add("kTileWidth", g.tile_width());
    add("kTileHeight", g.tile_height());
    add("kTilesX", g.width / g.tile_width());
    add("kTilesY", g.height / g.tile_height());
    add("kDepth", g.depth);
    add("kInputDepth", g.input_depth);
    add("kTapsZ", g.taps[0]);
    add("kPadZ", g.pad[0]);
    add("kPadY", g.pad[1]);
    add("kPadX", g.pad[2]);
    add("kOutputTiles", g.output_tiles());
    add("kGroups", g.groups());
    add("kTiles", g.tiles());
    add("kAhead", g.lead());
    text += fmt::format(
        "static constexpr unsigned long long kInputForm = {:#x}ULL;\n"
        "static constexpr unsigned long long kWeightForm = {:#x}ULL;\n"
        "__device__ static const int* taps(int outputs) {{ return {}_taps[outputs]; }}\n}};\n",
        form(g.halo_width() * g.row_bytes), form(8 * g.row_bytes), name);
    return text;
}

BoxLoad box_of(const Plan& plan, int input, const Geometry& g) {
    const Storage& x = plan.storage[input];
    const size_t rank = x.extents.size();
    BoxLoad box;
    box.extents = {x.extents.back(), x.extents[rank - 2], x.extents[rank - 3],
                   rank == 5 ? x.extents[1] : 1, x.extents[0]};
    box.box = {g.row_channels(), g.halo_width(), g.halo_height()};
    box.step = g.step;
    box.swizzle_bytes = g.row_bytes;
    box.mma_width = g.mma_width;
    return box;
}

// The whole kernel around the text that uses one position's sums.
KernelStep kernel_around(const Plan& plan, int input, const Geometry& g, const std::string& name,
                         const std::string& parameters, const std::string& store) {
    KernelStep kernel;
    kernel.name = name;
    kernel.threads = kThreads;
    kernel.blocks = static_cast<unsigned>(g.tiles());
    kernel.box = box_of(plan, input, g);
    kernel.shared_bytes =
        static_cast<size_t>(kReservedBytes + 2 * g.input_bytes() + g.stages * g.stage_bytes());
    kernel.macs = g.pictures * g.depth * g.height * g.width * g.outputs * g.channels * g.taps[0] *
                  g.taps[1] * g.taps[2];
    kernel.source = constants(g, name) +
                    fmt::format(R"(extern "C" __global__ void __launch_bounds__({threads}, 1)
{name}(const __grid_constant__ nc_tensor_map x_map, const unsigned char* __restrict__ w_packed, {parameters}) {{
  typedef {name}_c C;
  nc_conv<C>().run(&x_map, w_packed, [&](const nc_tile& tile, float (&sums)[{parts}][{half}]) {{
    const int pn = tile.picture;
    const int pz = tile.z;
    const int group = tile.outputs % C::kGroups;
    const int quarter = threadIdx.x % 4;
{store}
  }});
}}
)",
                                fmt::arg("threads", kThreads), fmt::arg("name", name),
                                fmt::arg("parameters", parameters), fmt::arg("parts", g.parts),
                                fmt::arg("half", g.mma_width / 2), fmt::arg("store", store));
    return kernel;
}

std::string activated(const ConvStep& conv, const std::string& sum) {
    if (conv.activation == Activation::none) return sum;
    if (conv.slope == 0.0F) return fmt::format("fmaxf({}, 0.0f)", sum);
    return fmt::format("nc_leaky({}, {})", sum, float_literal(static_cast<double>(conv.slope)));
}

// The text for every position whose sums a thread holds.
std::string over_positions(const Geometry& g, const std::string& body) {
    return fmt::format(R"(#pragma unroll
for (int m = 0; m < {parts}; ++m) {{
const int px = nc_conv_x<C>(tile, m);
#pragma unroll
for (int h = 0; h < 2; ++h) {{
const int py = nc_conv_y<C>(tile, m, h);
{body}}}
}}
)",
                       fmt::arg("parts", g.parts), fmt::arg("body", body));
}

// Stores the sums as they are, but for bias and activation.
std::string plain_store(const Plan& plan, int target, const Geometry& g, const ConvStep& conv) {
    const bool half = plan.storage[target].dtype == DType::f16;
    const std::string type = storage_type(plan.storage[target].dtype);
    std::string body = fmt::format(
        "const int* phase = C::taps(tile.outputs) + 5;\n"
        "{type}* corner = out + ((((long long)pn * {depth} + pz) * {height} + py * {upsample} + "
        "phase[0]) * {width} + px * {upsample} + phase[2]) * {outputs} + group * {mma_width};\n",
        fmt::arg("type", type), fmt::arg("depth", g.depth),
        fmt::arg("height", g.height * g.upsample), fmt::arg("width", g.width * g.upsample),
        fmt::arg("upsample", g.upsample), fmt::arg("outputs", g.outputs),
        fmt::arg("mma_width", g.mma_width));
    const std::string spread =
        g.upsample == 1
            ? "{ auto* place = corner;\n"
            : fmt::format(
                  "for (int dy = 0; dy < phase[1]; ++dy) for (int dx = 0; dx < phase[3]; "
                  "++dx) {{ auto* place = corner + (dy * {} + dx) * {};\n",
                  g.width * g.upsample, g.outputs);
    for (int64_t first = 0; first < g.mma_width; first += 32) {
        const int64_t count = std::min<int64_t>(4, (g.mma_width - first) / 8) * 2;
        const int64_t together = count == 8 ? 8 : 2;
        const std::string sum = fmt::format("sums[m][({} + i / 2) * 4 + h * 2 + i % 2]{}",
                                            first / 8, conv.has_bias ? " + b.e[e]" : "");
        const std::string shift =
            fmt::format("const auto b = nc_get<{}>(bias + at + j);\n", together);
        const std::string value = activated(conv, sum);
        body += fmt::format(
            R"({{
const int own = {first} + quarter * {count};
const int at = group * {mma_width} + own;
(void)at;
#pragma unroll
for (int j = 0; j < {count}; j += {together}) {{
nc_pack<{type}, {together}> o;
{shift}#pragma unroll
for (int e = 0; e < {together}; ++e) {{ const int i = j + e; o.e[e] = {value}; }}
{spread}nc_put(place + own + j, o); }}
}}
}}
)",
            fmt::arg("first", first), fmt::arg("count", count), fmt::arg("mma_width", g.mma_width),
            fmt::arg("together", together), fmt::arg("type", half ? "unsigned short" : "float"),
            fmt::arg("value", half ? "nc_f2h(" + value + ")" : value),
            fmt::arg("shift", conv.has_bias ? shift : ""), fmt::arg("spread", spread));
    }
    return over_positions(g, body);
}

int add_packed(Plan& plan, const Node& node, const ConvStep& conv, const Geometry& g, bool paired) {
    Tensor packed = pack_weights(*plan.graph.values[node.input(1)].constant, g,
                                 three(conv.window.kernel, 1), paired);
    const Shape shape = packed.shape();
    const int value =
        plan.graph.add_value({node.name + ":packed", DType::u8, shape,
                              std::make_shared<const Tensor>(std::move(packed)), kAbsent});
    plan.storage.push_back(row_major(Place::constant, DType::u8, shape));
    return value;
}

std::string bias_parameter(const ConvStep& conv) {
    return conv.has_bias ? "const float* __restrict__ bias, " : "";
}

}  // namespace

bool suits_halo_conv(const GraphIr& graph, const Node& node, const ConvStep& conv) {
    return geometry_of(graph, node, conv).has_value();
}

std::optional<Step> halo_conv_step(Plan& plan, int index, const ConvStep& conv,
                                   const std::string& name) {
    const Node node = plan.graph.nodes[index];
    const auto g = geometry_of(plan.graph, node, conv);
    if (!g || plan.storage[node.input(0)].dtype != DType::f16) return std::nullopt;
    const int target = node.outputs[0];
    Step step;
    step.label = fmt::format("{} '{}'", node.op, node.name);
    step.reads = node.inputs;
    step.reads[1] = add_packed(plan, node, conv, *g, false);
    step.writes = target;
    const std::string parameters =
        bias_parameter(conv) +
        fmt::format("{}* __restrict__ out", storage_type(plan.storage[target].dtype));
    KernelStep kernel = kernel_around(plan, node.input(0), *g, name, parameters,
                                      plain_store(plan, target, *g, conv));
    kernel.conv = std::make_shared<const ConvStep>(conv);
    kernel.node = index;
    step.work = std::move(kernel);
    return step;
}

namespace {

// The convolution and what a pointwise kernel makes of it, as one kernel; nothing when that kernel
// reads other places of the convolution's result.
std::optional<Step> fused(Plan& plan, const Step& source, const Step& reader) {
    const auto& old = std::get<KernelStep>(source.work);
    const ConvStep& conv = *old.conv;
    const Node node = plan.graph.nodes[old.node];
    const auto g = geometry_of(plan.graph, node, conv);
    const int target = reader.writes;
    const Storage& y = plan.storage[target];
    const int raw = source.writes;
    if (!g || g->upsample > 1 || !y.channels_last || y.dtype != DType::f16 ||
        g->mma_width % 64 != 0) {
        return std::nullopt;
    }
    const Storage& r = plan.storage[raw];
    if (!std::equal(y.extents.begin(), y.extents.end() - 1, r.extents.begin(),
                    r.extents.end() - 1)) {
        return std::nullopt;
    }
    const int64_t channels = y.extents.back();
    const bool paired = g->outputs == 2 * channels;
    if (!paired && g->outputs != channels) return std::nullopt;
    const int64_t across = paired ? g->mma_width / 2 : g->mma_width;  // channels of a tile

    Emitter emitter(plan);
    const auto sum = [&](int64_t first, const char* bias) {
        return activated(
            conv, fmt::format("sums[m][(4 * g + {} + u / 2) * 4 + h * 2 + u % 2]{}", first / 8,
                              conv.has_bias ? fmt::format(" + {}.e[u]", bias) : ""));
    };
    emitter.hold(raw, {{0, sum(0, "bias0")}, {channels, sum(across, "bias1")}},
                 {"pn", y.extents.size() == 5 ? "pz" : "", "py", "px"});
    const std::string index = emitter.begin_lanes("base", "u", 8);
    Indices at{"pn", index};
    if (y.extents.size() == 5) at.emplace_back("pz");
    at.insert(at.end(), {"py", "px"});
    const std::string value = emitter.root(target, at);
    if (!emitter.holds()) return std::nullopt;
    const std::string body = emitter.take_body();
    Indices first = at;
    first[1] = "base";
    std::string bias;
    if (conv.has_bias) {
        bias = "const nc_pack<float, 8> bias0 = nc_get<8>(bias + base);\n";
        if (paired) {
            bias += fmt::format("const nc_pack<float, 8> bias1 = nc_get<8>(bias + base + {});\n",
                                channels);
        }
    }
    // Channels outside, positions inside: what depends on channels alone is read once.
    const std::string at_position = fmt::format(
        R"(nc_pack<unsigned short, 8> o;
{ahead}#pragma unroll
for (int u = 0; u < 8; ++u) {{
{body}o.e[u] = nc_f2h({value});
}}
nc_put(out + {offset}, o);
)",
        fmt::arg("ahead", emitter.take_ahead()), fmt::arg("body", body), fmt::arg("value", value),
        fmt::arg("offset", emitter.offset(target, first)));
    const std::string store = fmt::format(
        R"(#pragma unroll
for (int g = 0; g < {groups}; ++g) {{
const int base = group * {across} + 32 * g + 8 * quarter;
{bias}{rest}}}
)",
        fmt::arg("groups", across / 32), fmt::arg("across", across), fmt::arg("bias", bias),
        fmt::arg("rest", over_positions(*g, at_position)));

    Step step;
    step.label = fmt::format("{} > {}", source.label, reader.label);
    step.writes = target;
    step.reads = source.reads;
    if (paired) step.reads[1] = add_packed(plan, node, conv, *g, true);
    step.reads.insert(step.reads.end(), emitter.reads().begin(), emitter.reads().end());
    step.work =
        kernel_around(plan, node.input(0), *g, std::get<KernelStep>(reader.work).name,
                      bias_parameter(conv) + kernel_parameters(plan, emitter, target), store);
    return step;
}

}  // namespace

void fuse_halo_results(Plan& plan) {
    std::vector<std::vector<size_t>> readers(plan.storage.size());
    for (size_t i = 0; i < plan.steps.size(); ++i) {
        for (const int read : plan.steps[i].reads) {
            if (readers[read].empty() || readers[read].back() != i) readers[read].push_back(i);
        }
    }
    std::vector<bool> gone(plan.steps.size(), false);
    for (size_t i = 0; i < plan.steps.size(); ++i) {
        const auto* kernel = std::get_if<KernelStep>(&plan.steps[i].work);
        if (kernel == nullptr || kernel->conv == nullptr) continue;
        const auto& by = readers[plan.steps[i].writes];
        if (by.size() != 1) continue;
        const auto* reader = std::get_if<KernelStep>(&plan.steps[by[0]].work);
        if (reader == nullptr || !reader->pointwise) continue;
        if (auto step = fused(plan, plan.steps[i], plan.steps[by[0]])) {
            plan.steps[by[0]] = std::move(*step);
            gone[i] = true;
        }
    }
    size_t kept = 0;
    for (size_t i = 0; i < plan.steps.size(); ++i) {
        if (gone[i]) continue;
        if (kept != i) plan.steps[kept] = std::move(plan.steps[i]);
        ++kept;
    }
    plan.steps.resize(kept);
}

std::string halo_prelude(const Plan& plan) {
    std::set<int64_t> widths;
    for (const Step& step : plan.steps) {
        const auto* kernel = std::get_if<KernelStep>(&step.work);
        if (kernel != nullptr && kernel->box) widths.insert(kernel->box->mma_width);
    }
    std::string text;
    for (const int64_t width : widths) {
        std::string registers;
        std::string operands;
        for (int64_t i = 0; i < width / 2; ++i) {
            registers += fmt::format("{}%{}", i == 0 ? "" : ", ", i);
            operands += fmt::format("{}\"+f\"(d[{}])", i == 0 ? "" : ", ", i);
        }
        text += fmt::format(
            "__device__ __forceinline__ void nc_mma(float (&d)[{half}], unsigned long long a, "
            "unsigned long long b, int keep) {{\n"
            "asm volatile(\"{{\\n.reg .pred p;\\nsetp.ne.b32 p, %{keep}, 0;\\n"
            "wgmma.mma_async.sync.aligned.m64n{width}k16.f32.f16.f16 {{{registers}}}, %{a}, %{b}, "
            "p, 1, 1, 0, 0;\\n}}\\n\" : {operands} : \"l\"(a), \"l\"(b), \"r\"(keep));\n}}\n",
            fmt::arg("half", width / 2), fmt::arg("keep", width / 2 + 2), fmt::arg("width", width),
            fmt::arg("registers", registers), fmt::arg("a", width / 2),
            fmt::arg("b", width / 2 + 1), fmt::arg("operands", operands));
    }
    return text.empty() ? text : text + std::string(kHaloConvText);
}

}  // namespace newscaster::device::cuda
