// The only place that names the providers of this build.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iterator>

#include "device/device.h"
#ifdef NEWSCASTER_CUDA
#include "device/cuda/cuda_device.h"
#endif
#ifdef NEWSCASTER_OPENVINO
#include "device/openvino/openvino_device.h"
#endif
#include "newscaster/error.h"

namespace newscaster::device {

namespace {

struct Provider {
    std::string_view name;
    std::unique_ptr<Device> (*open)(const DeviceOptions& options);
};

// Best first.
constexpr Provider kProviders[] = {
#ifdef NEWSCASTER_CUDA
    {"cuda", &open_cuda_device},
#endif
#ifdef NEWSCASTER_OPENVINO
    {"cpu", &open_openvino_device},
#endif
};

std::unique_ptr<Device> open_best_device(const DeviceOptions& options) {
    std::vector<std::string> reasons;
    for (const auto& provider : kProviders) {
        try {
            auto device = provider.open(options);
            for (const auto& reason : reasons) options.log(LogLevel::info, "{}", reason);
            return device;
        } catch (const Error& error) {
            if (error.code() != ErrorCode::device_unavailable) throw;
            reasons.push_back(
                fmt::format("provider {} is not used: {}", provider.name, error.what()));
        }
    }
    throw Error(ErrorCode::device_unavailable,
                fmt::format("device: no provider works here: {}", fmt::join(reasons, "; ")));
}

}  // namespace

std::vector<std::string> provider_names() {
    std::vector<std::string> names;
    names.reserve(std::size(kProviders));
    for (const auto& provider : kProviders) names.emplace_back(provider.name);
    return names;
}

std::unique_ptr<Device> open_device(const std::string& provider, const DeviceOptions& options) {
    if (provider == "auto") return open_best_device(options);
    for (const auto& known : kProviders) {
        if (known.name == provider) return known.open(options);
    }
    throw Error(ErrorCode::device_unavailable,
                fmt::format("device: found '{}', wanted one of: {}", provider,
                            fmt::join(provider_names(), ", ")));
}

}  // namespace newscaster::device
