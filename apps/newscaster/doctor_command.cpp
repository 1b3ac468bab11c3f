// newscaster doctor: what this machine can run.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

#include "commands.h"
#include "newscaster/error.h"
#include "newscaster/inspect.h"

namespace newscaster::cli {

namespace {

std::string joined(const std::vector<std::string>& items) {
    return items.empty() ? "none" : fmt::format("{}", fmt::join(items, ", "));
}

nlohmann::json to_json(const MachineReport& report) {
    auto providers = nlohmann::json::array();
    for (const auto& provider : report.providers) {
        providers.push_back({{"name", provider.name},
                             {"available", provider.available},
                             {"device", provider.device},
                             {"runtime", provider.runtime},
                             {"precisions", provider.precisions}});
    }
    return {{"newscaster", report.version},
            {"cores", report.cores},
            {"memory_bytes", report.memory_bytes},
            {"memory_available_bytes", report.memory_available_bytes},
            {"cache_dir", report.cache_dir.string()},
            {"cache_writable", report.cache_writable},
            {"providers", providers},
            {"encoders", report.encoders},
            {"paste_kernels", report.paste_kernels},
            {"advice", report.advice}};
}

void print_text(const MachineReport& report) {
    fmt::print("newscaster  {}\n", report.version);
    fmt::print("machine     {} cores, {} MiB memory ({} MiB free)\n", report.cores,
               report.memory_bytes >> 20U, report.memory_available_bytes >> 20U);
    fmt::print("cache       {}{}\n", report.cache_dir.string(),
               report.cache_writable ? "" : " (not writable)");
    for (const auto& provider : report.providers) {
        if (provider.available) {
            fmt::print("provider    {}: {}, {}; {}\n", provider.name, provider.device,
                       provider.runtime, joined(provider.precisions));
        } else {
            fmt::print("provider    {}: not available: {}\n", provider.name, provider.device);
        }
    }
    fmt::print("encoders    {}\n", joined(report.encoders));
    fmt::print("compositor  {}\n", joined(report.paste_kernels));
    if (report.advice.empty()) fmt::print("advice      none, all well\n");
    for (const auto& line : report.advice) fmt::print("advice      {}\n", line);
}

}  // namespace

int run(const DoctorRequest& /*request*/, const GlobalOptions& global) {
    const MachineReport report = inspect_machine();
    if (global.json) {
        fmt::print("{}\n", to_json(report).dump(2));
    } else {
        print_text(report);
    }
    return 0;
}

}  // namespace newscaster::cli
