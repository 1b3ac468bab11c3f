// --report: the run as JSON.
#pragma once

#include <nlohmann/json.hpp>

#include "newscaster/engine.h"
#include "newscaster/render.h"

namespace newscaster::cli {

[[nodiscard]] nlohmann::json to_json(const RenderReport& report, const EngineInfo& engine,
                                     const Avatar& avatar, const RenderJob& job);

}  // namespace newscaster::cli
