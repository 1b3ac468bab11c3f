// The only place that names the providers of this build.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iterator>

#include "device/device.h"
#ifdef NEWSCASTER_CUDA
#include "device/cuda/cuda_device.h"
#endif
#include "device/openvino/openvino_device.h"
#include "newscaster/error.h"

namespace newscaster::device {

namespace {

struct Provider {
    std::string_view name;
    std::unique_ptr<Device> (*open)(const DeviceOptions& options);
};

// "auto" takes the first; cuda is for those who ask for it until whole renders have run on it.
constexpr Provider kProviders[] = {
    {"cpu", &open_openvino_device},
#ifdef NEWSCASTER_CUDA
    {"cuda", &open_cuda_device},
#endif
};

}  // namespace

std::vector<std::string> provider_names() {
    std::vector<std::string> names;
    names.reserve(std::size(kProviders));
    for (const auto& provider : kProviders) names.emplace_back(provider.name);
    return names;
}

std::unique_ptr<Device> open_device(const std::string& provider, const DeviceOptions& options) {
    for (const auto& known : kProviders) {
        if (known.name == provider) return known.open(options);
    }
    throw Error(ErrorCode::device_unavailable,
                fmt::format("device: found '{}', wanted one of: {}", provider,
                            fmt::join(provider_names(), ", ")));
}

}  // namespace newscaster::device
