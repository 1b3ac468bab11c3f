// Writes the CUDA source of one expression: a value of the graph at given indices. Everything that
// is not stored in memory is recomputed in registers, always in f32; constants of the geometry are
// literals.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "device/cuda/plan.h"

namespace newscaster::device::cuda {

using Indices = std::vector<std::string>;  // C expressions of type int, one per axis

class Emitter {
  public:
    explicit Emitter(const Plan& plan) : plan_(plan) {}

    // Appends statements to body() and returns an expression of the value's C type.
    std::string value(int value, const Indices& at);
    // The same for a stored value that this kernel computes.
    std::string root(int value, const Indices& at);

    // Indices of a linear number over `extents` (row-major), as statements.
    Indices unravel(const std::string& linear, const Shape& extents);
    // The expression as a named int, or itself when it is a literal or a name.
    std::string name_int(const std::string& expression);
    [[nodiscard]] std::string offset(int value, const Indices& at) const;

    [[nodiscard]] std::string take_body() { return std::exchange(body_, {}); }
    // Values read from memory, in the order of the parameters.
    [[nodiscard]] const std::vector<int>& reads() const { return reads_; }
    // Nodes that ended up inside this kernel.
    [[nodiscard]] const std::vector<int>& nodes() const { return nodes_; }
    void note_node(int node);
    void append(const std::string& text) { body_ += text; }

    // From here on the kernel computes `width` neighbours of the innermost axis, at base + lane
    // with lane = 0 .. width - 1 in a loop that the compiler unrolls. What those neighbours read
    // side by side is loaded at once. base: a multiple of width. Returns the neighbour's index.
    std::string begin_lanes(const std::string& base, const std::string& lane, int64_t width);
    // Statements that all lanes agree on, for before their loop.
    [[nodiscard]] std::string take_ahead() { return std::exchange(ahead_, {}); }
    // How many neighbours what was read side by side has at least.
    [[nodiscard]] int64_t finest() const { return finest_; }
    // Bases (multiples of the width) from which lanes read something else than below.
    [[nodiscard]] const std::set<int64_t>& splits() const { return splits_; }
    // From here on base is known to be one of first .. last - 1.
    void assume(int64_t first, int64_t last) { assumed_ = {first, last}; }
    void end_lanes();
    // Reads of `value` at `place` (indices after the channel; "" is skipped) and at this lane's
    // channel plus a shift give that shift's expression. holds(): no read was elsewhere.
    void hold(int value, std::map<int64_t, std::string> by_shift, const Indices& place);
    [[nodiscard]] bool holds() const { return held_ && held_->fits; }

    void open(const std::string& head);  // a block; close() forgets what it defined
    void close();

  private:
    std::string load(int value, const Indices& at);
    std::string load_together(int value, const Indices& at);  // "" where it does not apply
    struct LaneForm;
    [[nodiscard]] LaneForm form_of(const std::string& expression) const;
    [[nodiscard]] int64_t grain(const std::string& expression) const;
    [[nodiscard]] bool is_inside(const std::string& expression) const;
    void write(const std::string& name, const std::string& statement,
               const std::string& expression);
    std::string compute(const Node& node, int value, const Indices& at);
    std::string pointwise(const Node& node, const Indices& at);
    std::string moved(const Node& node, int value, const Indices& at);
    std::string reshaped(int from, int to, const Indices& at);
    [[nodiscard]] std::optional<bool> is_below(const std::string& index, int64_t limit);
    [[nodiscard]] std::string below(const std::string& index, int64_t limit) const;
    std::string concat(const Node& node, int value, const Indices& at);
    std::string pad(const Node& node, int value, const Indices& at);
    std::string gather(const Node& node, const Indices& at);
    std::string cast(const Node& node, int value, const Indices& at);
    std::string resize(const Node& node, int value, const Indices& at);
    std::string grid_sample(const Node& node, int value, const Indices& at);
    std::string sample_axis(const Node& node, size_t axis, const std::string& grid);
    std::string conv(const Node& node, int value, const Indices& at);
    std::string pool(const Node& node, const Indices& at);
    std::string matmul(const Node& node, int value, const Indices& at);
    std::string reduce(const Node& node, int value, const Indices& at);
    std::string batch_norm(const Node& node, const Indices& at);
    std::string instance_apply(const Node& node, const Indices& at);
    std::string tap_sum(const Node& node, const Indices& at);

    std::string operand(const Node& node, size_t input, const Indices& at);  // broadcast
    std::string fresh(std::string_view prefix);
    std::string define(std::string_view type, const std::string& expression);
    std::string fused(const std::vector<std::string>& lows, const std::vector<std::string>& highs,
                      const std::vector<std::string>& weights, int data, Indices at);

    const Plan& plan_;
    std::string body_;
    std::vector<int> reads_;
    std::vector<int> nodes_;
    std::map<std::string, std::string> cache_;
    std::vector<std::map<std::string, std::string>> saved_;
    int counter_ = 0;

    struct Lanes {
        std::string lane;
        int64_t width = 0;
    };
    std::optional<Lanes> lanes_;
    std::string ahead_;
    int64_t finest_ = 0;
    std::set<int64_t> splits_;
    std::optional<std::pair<int64_t, int64_t>> assumed_;
    std::set<std::string> inside_;                     // names defined within the loop over lanes
    std::map<std::string, std::string> before_lanes_;  // the cache then
    struct Held {
        int value = kAbsent;
        std::map<int64_t, std::string> by_shift;
        Indices place;  // of every axis but the channel
        bool fits = true;
    };
    std::optional<Held> held_;
    std::string held(const Indices& at);
    // An index that counts through `count` neighbours: first + part, where first is a multiple of
    // count and the same for as many lanes, and part the lane's place among them.
    struct LaneForm {
        std::string text;  // what to write for it; empty where there is no form
        std::string first;
        std::string part;
        int64_t count = 0;
        std::optional<int64_t> shift;  // from the lane's own index, where that is all
    };
    std::map<std::string, LaneForm> forms_;  // by name
    std::map<std::string, int64_t> grains_;  // lanes that share a name's value, where not all do
    std::vector<bool> loops_;                // of the open blocks
};

[[nodiscard]] std::string c_type(DType dtype);        // of a value in registers
[[nodiscard]] std::string storage_type(DType dtype);  // in memory
[[nodiscard]] std::string float_literal(double value);
// The expression as it is stored in memory.
[[nodiscard]] std::string stored_as(DType dtype, const std::string& expression);
// Parameters and label of a kernel that stores `target`.
[[nodiscard]] std::string kernel_parameters(const Plan& plan, const Emitter& emitter, int target);
[[nodiscard]] std::string kernel_label(const Plan& plan, const Emitter& emitter);
// A kernel with one thread for each t below `count`, which `body` turns into elements of `target`.
[[nodiscard]] Step flat_step(const Plan& plan, const Emitter& emitter, int target,
                             const std::string& name, int64_t count, const std::string& body);

}  // namespace newscaster::device::cuda
