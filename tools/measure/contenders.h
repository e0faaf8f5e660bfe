// Contenders as the command line of a benchmark names them:
// STRATEGY[(OPTIONS)][/DRAFT_MAX[/PLAN]], such as "knapspec", "lookup/4", "knapspec-paper(tau=0.3)"
// or "static/4/a=w16+256". A list of them has commas, so options and the items of a plan are set
// apart by semicolons: "knapspec-paper(tau=0.3;interval=16)", "draft-verify/12/a2-4=skip;m7=skip".
#pragma once

#include <string>
#include <string_view>

#include "knap/types.h"

#include "tools/check/contender.h"

namespace knap {

bool is_strategy(std::string_view name);
std::string strategy_names();  // "autoregressive|static|..."

// The contender's name is the text. Throws knap::Error when the text has another form or names no
// strategy.
Contender parse_contender(std::string_view text);

// The settings that differ from a strategy's own: "tau=0.3,exit=0 draft_max=4 plan=a=w16+256";
// empty: none do.
std::string describe_options(const SpeculationOptions& options);

}  // namespace knap
