// The names of contenders on the command line of a benchmark:
// STRATEGY[(OPTIONS)][/DRAFT_MAX[/PLAN]], such as "knapspec", "lookup/4", "knapspec-paper(tau=0.3)"
// or "static/4/a=w16+256". Commas separate the contenders of a list, so semicolons separate options
// and the items of a plan: "knapspec-paper(tau=0.3;interval=16)",
// "draft-verify/12/a2-4=skip;m7=skip".
#pragma once

#include <string>
#include <string_view>

#include "knap/types.h"

#include "tools/check/contender.h"

namespace knap {

bool is_strategy(std::string_view name);
std::string strategy_names();  // "autoregressive|static|..."

// The contender's name is the text itself. Throws knap::Error when the text does not have this form
// or names no strategy.
Contender parse_contender(std::string_view text);

// The settings that were given, joined by spaces: "exit=0 tau=0.3 draft_max=4". Empty when all are
// the strategy's defaults.
std::string describe_options(const SpeculationOptions& options);

}  // namespace knap
