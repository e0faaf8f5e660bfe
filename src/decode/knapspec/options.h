// The settings of the strategy `knapspec` (docs/methods.md, "KnapSpec, extended").
#pragma once

#include <span>

#include "knap/types.h"

#include "decode/knapspec/plan_scout.h"

namespace knap {

struct KnapspecOptions {
    float budget = 0.01f;  // share of a request's time that measuring and searching may take
    bool copies = true;    // allow drafts copied from the text
    bool plans = true;     // allow drafts with plans
    bool cascades = true;  // allow copies that a plan checks and extends
    bool memory = true;    // begin with what earlier runs have learned, if any of it is kept
    int max_copy = 32;     // longest copy, in tokens
    PlanScoutOptions scout{};
};

// Throws when an option is not valid.
KnapspecOptions read_knapspec_options(const SpeculationOptions& options);

// False for `knapspec` with memory=off. Throws when an option of it is not valid.
bool begins_with_memory(const SpeculationOptions& options);

// The keys of --strategy-options.
std::span<const StrategyOptionInfo> knapspec_option_infos();

}  // namespace knap
