// A plan to look at: a column for each layer, a row for its attention and one for its MLP, a colour
// for each level.
#pragma once

#include <string>
#include <string_view>

#include "graph/module_plan.h"

namespace knap {

// For a terminal. Without colours the letters tell the levels apart.
std::string plan_picture(const ModulePlan& plan, bool has_colors);

// A script for gnuplot (plot.h).
std::string plan_plot_script(const ModulePlan& plan, std::string_view title);

}  // namespace knap
