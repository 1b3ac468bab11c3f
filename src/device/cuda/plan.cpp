#include "device/cuda/plan.h"

#include <fmt/format.h>

namespace newscaster::device::cuda {

namespace {

void set_strides(Storage& storage) {
    storage.strides.assign(storage.order.size(), 0);
    int64_t stride = 1;
    for (size_t i = storage.order.size(); i > 0; --i) {
        storage.strides[storage.order[i - 1]] = stride;
        stride *= storage.extents[i - 1];
    }
}

std::string form(const Plan& plan, int value) {
    const Storage& storage = plan.storage[value];
    return fmt::format("{}{}{}", name_of(storage.dtype), to_string(plan.graph.values[value].shape),
                       storage.channels_last ? "cl" : "");
}

}  // namespace

Storage row_major(Place place, DType dtype, const Shape& shape) {
    Storage storage{place, dtype, {}, shape, {}, false};
    for (size_t i = 0; i < shape.size(); ++i) storage.order.push_back(static_cast<int>(i));
    set_strides(storage);
    return storage;
}

Storage channels_last(Place place, DType dtype, const Shape& shape) {
    Storage storage{place, dtype, {0}, {shape[0]}, {}, true};
    for (size_t i = 2; i < shape.size(); ++i) {
        storage.order.push_back(static_cast<int>(i));
        storage.extents.push_back(shape[i]);
    }
    storage.order.push_back(1);
    storage.extents.push_back(padded_channels(shape[1]));
    set_strides(storage);
    return storage;
}

std::string describe(const Plan& plan) {
    std::string text;
    for (size_t i = 0; i < plan.steps.size(); ++i) {
        const Step& step = plan.steps[i];
        const char* kind = std::holds_alternative<KernelStep>(step.work) ? "kernel"
                           : std::holds_alternative<ConvStep>(step.work) ? "cudnn"
                                                                         : "cublaslt";
        text += fmt::format("{:4} {:8} {} <-", i, kind, form(plan, step.writes));
        for (const int read : step.reads) text += fmt::format(" {}", form(plan, read));
        text += fmt::format("  | {}\n", step.label);
    }
    text += fmt::format("{} steps, arena {} bytes ({} without sharing)\n", plan.steps.size(),
                        plan.arena_bytes, plan.arena_bytes_unshared);
    return text;
}

}  // namespace newscaster::device::cuda
