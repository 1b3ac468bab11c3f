#include "device/cuda/memory_plan.h"

#include <gtest/gtest.h>

#include <random>

namespace newscaster::device::cuda {
namespace {

// Random chains with jumps: each step reads up to three earlier values and writes a new one.
Plan random_plan(std::mt19937& random, int steps) {
    Plan plan;
    for (int i = 0; i < steps; ++i) {
        const Shape shape{1 + static_cast<int64_t>(random() % 5000)};
        plan.graph.add_value({"v", DType::f32, shape, nullptr, i});
        plan.storage.push_back(row_major(Place::arena, DType::f32, shape));
        Step step{KernelStep{}, "", {}, i};
        for (auto k = random() % 3; i > 0 && k > 0; --k) {
            step.reads.push_back(static_cast<int>(random() % static_cast<uint64_t>(i)));
        }
        plan.steps.push_back(step);
    }
    return plan;
}

TEST(MemoryPlan, LiveValuesNeverOverlap) {
    std::mt19937 random(11);
    for (int turn = 0; turn < 50; ++turn) {
        Plan plan = random_plan(random, 40);
        plan_memory(plan);
        std::vector<size_t> last(plan.steps.size());
        for (size_t i = 0; i < plan.steps.size(); ++i) {
            last[i] = std::max(last[i], i);
            for (const int read : plan.steps[i].reads) last[read] = i;
        }
        for (size_t a = 0; a < plan.steps.size(); ++a) {
            const size_t end = plan.arena_offset[a] + plan.storage[a].bytes();
            EXPECT_LE(end, plan.arena_bytes);
            EXPECT_EQ(plan.arena_offset[a] % 256, 0U);
            for (size_t b = a + 1; b < plan.steps.size() && b <= last[a]; ++b) {
                const bool apart =
                    end <= plan.arena_offset[b] ||
                    plan.arena_offset[b] + plan.storage[b].bytes() <= plan.arena_offset[a];
                EXPECT_TRUE(apart) << a << " and " << b;
            }
        }
        EXPECT_LE(plan.arena_bytes, plan.arena_bytes_unshared);
    }
}

TEST(MemoryPlan, AChainNeedsTwoBlocks) {
    Plan plan;
    for (int i = 0; i < 10; ++i) {
        plan.graph.add_value({"v", DType::f32, {1024}, nullptr, i});
        plan.storage.push_back(row_major(Place::arena, DType::f32, {1024}));
        plan.steps.push_back(
            {KernelStep{}, "", i == 0 ? std::vector<int>{} : std::vector<int>{i - 1}, i});
    }
    plan_memory(plan);
    EXPECT_EQ(plan.arena_bytes, 2U * 4096);
    EXPECT_EQ(plan.arena_bytes_unshared, 10U * 4096);
}

}  // namespace
}  // namespace newscaster::device::cuda
