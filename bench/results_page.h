// docs/benchmarks/cpu.md from measured data.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace newscaster::bench {

// What is promised and whether `results` (the content of cpu.json, "renders" and "compositor")
// keep it: [{name, wanted, found, met}]. Targets whose data is missing are left out.
[[nodiscard]] nlohmann::json judge_targets(const nlohmann::json& results);

// The page. results: cpu.json with "targets"; stages: the "benchmarks" of cpu-stages.json, may be
// empty.
[[nodiscard]] std::string results_page(const nlohmann::json& results, const nlohmann::json& stages);

}  // namespace newscaster::bench
