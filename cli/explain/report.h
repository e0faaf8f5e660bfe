// An explanation as text for a terminal, as a JSON object and as a plot.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "knap/types.h"

#include "tools/explain/explain.h"

namespace knap {

std::string to_text(const Explanation& explanation, const RuntimeConfig& config, bool has_colors);

// Field names are a promise to scripts: new ones may come, none is renamed.
nlohmann::ordered_json to_json(const Explanation& explanation, const RuntimeConfig& config);

// A script for gnuplot (plot.h). Only where there is a plan to show.
std::string explanation_plot_script(const Explanation& explanation);
// Whether a plan was chosen or could have been.
bool has_plan(const Explanation& explanation);

}  // namespace knap
