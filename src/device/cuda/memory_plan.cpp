#include "device/cuda/memory_plan.h"

#include <algorithm>
#include <limits>

namespace newscaster::device::cuda {

namespace {

constexpr size_t kAlignment = 256;

struct Block {
    int value = kAbsent;
    size_t first = 0;  // step that writes it
    size_t last = 0;   // last step that reads it
    size_t bytes = 0;
};

std::vector<Block> blocks_of(const Plan& plan) {
    std::vector<Block> blocks;
    std::vector<size_t> slot(plan.storage.size(), std::numeric_limits<size_t>::max());
    for (size_t i = 0; i < plan.steps.size(); ++i) {
        const Step& step = plan.steps[i];
        for (const int read : step.reads) {
            if (plan.storage[read].place == Place::arena) blocks[slot[read]].last = i;
        }
        const Storage& target = plan.storage[step.writes];
        if (target.place != Place::arena) continue;
        slot[step.writes] = blocks.size();
        const size_t bytes = (target.bytes() + kAlignment - 1) / kAlignment * kAlignment;
        blocks.push_back({step.writes, i, i, bytes});
    }
    return blocks;
}

}  // namespace

void plan_memory(Plan& plan) {
    plan.arena_offset.assign(plan.storage.size(), 0);
    plan.arena_bytes = 0;
    plan.arena_bytes_unshared = 0;
    auto blocks = blocks_of(plan);
    std::ranges::stable_sort(blocks, std::greater{}, &Block::bytes);
    std::vector<Block> placed;  // ascending offsets
    for (const Block& block : blocks) {
        size_t offset = 0;
        for (const Block& other : placed) {
            const bool together = other.first <= block.last && block.first <= other.last;
            const size_t start = plan.arena_offset[other.value];
            if (!together || start + other.bytes <= offset) continue;
            if (start >= offset + block.bytes) break;
            offset = start + other.bytes;
        }
        plan.arena_offset[block.value] = offset;
        plan.arena_bytes = std::max(plan.arena_bytes, offset + block.bytes);
        plan.arena_bytes_unshared += block.bytes;
        const auto after = std::ranges::find_if(
            placed, [&](const Block& other) { return plan.arena_offset[other.value] > offset; });
        placed.insert(after, block);
    }
}

}  // namespace newscaster::device::cuda
