// A profile as a gnuplot script (plot.h): t_attn(n), t_mlp and t_head, t_verify(k, n), each with
// its fit, and the residuals of the fit.
#pragma once

#include <string>

#include "search/cost/cost_model.h"

namespace knap {

std::string profile_plot_script(const CostProfile& profile, const CostModel& costs);

}  // namespace knap
