// The tensors of a clip's avatar, collected frame by frame; and which frames can share features.
// Private to this room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/safetensors.h"
#include "core/stage_types.h"

namespace newscaster::pipeline {

// Entries behind each other along the first axis; large ones as half floats.
class TensorStack {
  public:
    // tensors: one entry each, the same names and shapes every time.
    void append(const TensorMap& tensors);
    // Entry `from` once more at the end.
    void repeat(int64_t from);

    [[nodiscard]] int64_t entries() const { return entries_; }
    // Leaves the stack empty.
    [[nodiscard]] TensorMap take();

  private:
    struct Column {
        DType dtype = DType::f32;
        Shape entry;  // first axis 1
        std::vector<std::byte> bytes;
    };
    std::map<std::string, Column> columns_;
    int64_t entries_ = 0;
};

// Decides which frames of a clip get features of their own: those that look different from the
// last that did.
class KeyFrames {
  public:
    // least_gap: frames between two keys at least, which bounds their number. 1 or more.
    explicit KeyFrames(int64_t least_gap) : least_gap_(least_gap) {}

    // The crop of the next frame, square.
    [[nodiscard]] bool is_key(const RgbImage& crop);

  private:
    int64_t least_gap_;
    int64_t since_ = 0;
    std::vector<float> last_;  // block means of the last key, empty before the first
};

}  // namespace newscaster::pipeline
