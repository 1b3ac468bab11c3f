// Benchmarks of the engine on a GPU; see gpu_bench.cpp.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace newscaster::bench {

// Median milliseconds of `action` after some calls to warm up.
[[nodiscard]] inline double median_ms(int repeats, const std::function<void()>& action) {
    constexpr int kWarmUp = 5;
    std::vector<double> times;
    for (int i = 0; i < kWarmUp + repeats; ++i) {
        const auto start = std::chrono::steady_clock::now();
        action();
        const std::chrono::duration<double, std::milli> span =
            std::chrono::steady_clock::now() - start;
        if (i >= kWarmUp) times.push_back(span.count());
    }
    std::ranges::nth_element(times, times.begin() + std::ssize(times) / 2);
    return times[times.size() / 2];
}

// The DDIM loop of one window: latency by steps and precision, and f16 against f32.
[[nodiscard]] nlohmann::json measure_diffusion(const std::string& pack,
                                               const std::string& provider);

// Paste-back and download of 165 frames: the region of interest against the whole canvas.
[[nodiscard]] nlohmann::json measure_splice(const std::string& avatar, const std::string& provider);

struct SessionBench {
    std::string pack;
    std::string avatar;
    std::string provider;
    std::string precision;
    std::string speech;
    double seconds = 0.0;  // of the speech; 0: all
    int batch = 0;
    std::vector<int> sessions;  // at the same time
};
// Sessions side by side: throughput, time to the first frame, time by stage, memory.
[[nodiscard]] nlohmann::json measure_sessions(const SessionBench& wanted);

}  // namespace newscaster::bench
