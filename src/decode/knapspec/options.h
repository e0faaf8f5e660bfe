// The settings of the strategy `knapspec`.
#pragma once

#include <span>

#include "knap/types.h"

#include "decode/knapspec/plan_scout.h"

namespace knap {

struct KnapspecOptions {
    float budget = 0.02f;  // share of a request's time that measuring and searching may take
    bool copies = true;    // tokens may be copied after a match in the text
    bool plans = true;     // cheaper versions of the model may draft
    bool cascades = true;  // copies may be checked and extended by a plan
    int max_copy = 16;     // tokens copied in a row, at most
    PlanScoutOptions scout{};
};

// Throws when an option is not valid.
KnapspecOptions read_knapspec_options(const SpeculationOptions& options);

// The keys of --strategy-options.
std::span<const StrategyOptionInfo> knapspec_option_infos();

}  // namespace knap
