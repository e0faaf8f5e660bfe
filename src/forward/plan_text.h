// The written form of a plan: "full" for the whole model, or a list of items such as
//     a3-7=skip,m5=skip,m8=e4,a8+10-29=w16+256,exit=30,head=reduced
// `a` selects attentions, `m` MLPs, `l` both, followed by layers as numbers and ranges joined by
// `+`; none selects every layer. A level is `full`, `skip`, for attention `wSINKS+RECENT`, and for
// MLPs of experts `eN`: rows use their N best.
// `exit=N` skips layers N and above; `head` is `full` or `reduced`. Later items override earlier
// ones; anything not selected is `full`.
#pragma once

#include <string>
#include <string_view>

#include "forward/module_plan.h"

namespace knap {

// Writes a plan in its canonical form, as short as it can; parse_plan() reads it back.
std::string to_string(const ModulePlan& plan);

// Throws knap::Error with one line that begins with `where`, the setting or file that the text
// comes from. A plan that can be written cannot always be run: see check_runnable().
ModulePlan parse_plan(std::string_view text, int n_layers, std::string_view where = kPlanSetting);

}  // namespace knap
