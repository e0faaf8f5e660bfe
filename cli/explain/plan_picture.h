// Draws a plan: a column per layer, a row for attention and a row for MLPs, a colour per level.
#pragma once

#include <string>
#include <string_view>

#include "forward/module_plan.h"

namespace knap {

// For a terminal. Letters distinguish the levels even without colours.
std::string plan_picture(const ModulePlan& plan, bool has_colors);

// A script for gnuplot (plot.h).
std::string plan_plot_script(const ModulePlan& plan, std::string_view title);

}  // namespace knap
