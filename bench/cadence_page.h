// docs/benchmarks/cadence.md from measured data.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace newscaster::bench {

// What is promised of the default mode and whether `avatars` (the "avatars" of cadence.json) keep
// it: [{name, wanted, found, met}].
[[nodiscard]] nlohmann::json judge_cadence(const nlohmann::json& avatars);

// The page. results: cadence.json with "targets".
[[nodiscard]] std::string cadence_page(const nlohmann::json& results);

}  // namespace newscaster::bench
