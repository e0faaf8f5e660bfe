// An explanation as text for a terminal, as a JSON object and as a plot.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "knap/types.h"

#include "tools/explain/explain.h"

namespace knap {

std::string to_text(const Explanation& explanation, const RuntimeConfig& config, bool has_colors);

// Scripts rely on the field names: new fields may be added, none is renamed.
nlohmann::ordered_json to_json(const Explanation& explanation, const RuntimeConfig& config);

// A script for gnuplot (plot.h). Requires has_plan().
std::string explanation_plot_script(const Explanation& explanation);
// True when there is a plan to show: the chosen one, or a candidate.
bool has_plan(const Explanation& explanation);

}  // namespace knap
