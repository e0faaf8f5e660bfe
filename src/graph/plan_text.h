// The written form of a plan: "full" for the whole model, or a list of items such as
//     a3-7=skip,m5=skip,a8+10-29=w16+256,exit=30,head=reduced
// `a` names attentions, `m` MLPs, `l` both; layers follow as numbers and ranges joined by `+`, none
// meaning every layer. A level is `full`, `skip` or, for attention, `wSINKS+RECENT`. `exit=N` skips
// layers N and above; `head` is `full` or `reduced`. Later items win over earlier ones; what no
// item names is `full`.
#pragma once

#include <string>
#include <string_view>

#include "graph/module_plan.h"

namespace knap {

// One text for one plan, the shortest of the ways that it knows; parse_plan() gives the plan back.
std::string to_string(const ModulePlan& plan);

// Throws knap::Error in one line that begins with `where`, the setting or file that the text is
// from. What can be written is more than what can be run: see check_runnable().
ModulePlan parse_plan(std::string_view text, int n_layers, std::string_view where = kPlanSetting);

}  // namespace knap
