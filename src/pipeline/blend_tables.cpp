#include "pipeline/blend_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "core/keypoint_blend.h"
#include "decode/crop_blend.h"
#include "newscaster/error.h"

namespace newscaster::pipeline {

namespace {

using decode::OffsetGrids;
using device::KeyBlender;

constexpr size_t kShares = 1;  // behind the overall share
constexpr size_t kShareCells = ShareMaps::kGrid * ShareMaps::kGrid;
constexpr size_t kOffsetCells = OffsetGrids::kGrid * OffsetGrids::kGrid;
constexpr size_t kX = kShares + kShareCells;
constexpr size_t kY = kX + kOffsetCells;

}  // namespace

BlendTables::BlendTables(device::Device& device, StrideMode mode, size_t tasks, int64_t crop_size,
                         device::Location place)
    : device_(device),
      mode_(mode),
      crop_size_(crop_size),
      part_floats_(mode == StrideMode::frame ? kY + kOffsetCells : kX),
      task_floats_(KeyBlender::kMostParts * part_floats_),
      copied_(device.make_event()) {
    const device::TensorInfo info{
        "blend tables",
        DType::f32,
        {static_cast<int64_t>(tasks), static_cast<int64_t>(task_floats_)}};
    host_ = device.allocate(info, device::Location::pinned);
    values_ = device.allocate(info, place);
}

void BlendTables::upload(std::span<const RenderTask> tasks, device::Stream& stream) {
    copied_->synchronize();
    const auto tables = host_->host_f32();
    if (tasks.size() * task_floats_ > tables.size()) {
        throw Error(ErrorCode::runtime,
                    fmt::format("blend tables: found {} frames, wanted at most {}", tasks.size(),
                                tables.size() / task_floats_));
    }
    for (size_t i = 0; i < tasks.size(); ++i) {
        if (!tasks[i].key) compute(tasks[i], tables.subspan(i * task_floats_, task_floats_));
    }
    device_.copy_range(*host_, 0, *values_, 0, tasks.size() * task_floats_ * sizeof(float), stream);
    device_.record(*copied_, stream);
}

void BlendTables::compute(const RenderTask& task, std::span<float> table) const {
    std::vector<BlendKey> keys;
    std::vector<std::span<const float>> keypoints;
    for (const auto& [key, prior] : task.sources) {
        keys.push_back({key->keypoints, prior});
        keypoints.push_back(key->keypoints);
    }
    const auto& target = task.frame.keypoints;
    const ShareMaps shares(BlendFit(target, keys), target);
    for (size_t i = 0; i < keys.size(); ++i) {
        const auto part = table.subspan(i * part_floats_, part_floats_);
        part[0] = static_cast<float>(shares.overall(i));
        std::ranges::copy(shares.grid(i), part.subspan(kShares).begin());
    }
    if (mode_ != StrideMode::frame) return;
    const auto offsets = decode::crop_offsets(target, keypoints, crop_size_);
    for (size_t i = 0; i < offsets.size(); ++i) {
        const auto part = table.subspan(i * part_floats_, part_floats_);
        std::ranges::copy(offsets[i].x, part.subspan(kX).begin());
        std::ranges::copy(offsets[i].y, part.subspan(kY).begin());
    }
}

KeyBlender::Grids BlendTables::grids(size_t task, size_t offset, int64_t size) const {
    return {values_.get(), task * task_floats_ + offset, part_floats_, size};
}

KeyBlender::Grids BlendTables::overall(size_t task) const {
    return grids(task, 0, 1);
}

KeyBlender::Grids BlendTables::shares(size_t task) const {
    return grids(task, kShares, ShareMaps::kGrid);
}

KeyBlender::Grids BlendTables::x_offsets(size_t task) const {
    return grids(task, kX, OffsetGrids::kGrid);
}

KeyBlender::Grids BlendTables::y_offsets(size_t task) const {
    return grids(task, kY, OffsetGrids::kGrid);
}

}  // namespace newscaster::pipeline
