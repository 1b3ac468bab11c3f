// Batches against frame-by-frame drawing, on the CPU provider: same frames, same order.
#include "pipeline/batch_renderer.h"

#include <gtest/gtest.h>

#include "pipeline/batch_session_test_util.h"

namespace newscaster::pipeline {
namespace {

TEST(BatchRenderer, DrawsWhatFrameByFrameDrawingDraws) {
    constexpr int64_t kFrames = 20;  // not a multiple of the batch
    const auto wanted = draw_session(open_engine(), {}, kFrames);
    const auto found = draw_session(open_batched_engine(), {}, kFrames);
    // A batch of three may add up in another order: one level at rounding borders.
    expect_same_pictures(found.pictures, wanted.pictures, 1);
}

}  // namespace
}  // namespace newscaster::pipeline
