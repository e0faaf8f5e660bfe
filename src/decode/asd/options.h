// The settings of the strategy `asd`.
#pragma once

#include <span>

#include "knap/types.h"

#include "decode/asd/removable_attentions.h"
#include "decode/draft_verify/adaptive_threshold.h"

namespace knap {

struct AsdOptions {
    ThresholdOptions threshold{};
    AttentionRule rule{};
    int n_rows = 64;         // last rows of the text to average over
    int refresh_rounds = 0;  // rounds between choices; 0: one choice per request
};

// Throws when an option is not valid. `max_rows`: of a verification, including the pending token.
AsdOptions read_asd_options(const SpeculationOptions& options, int max_rows);

// The keys of --strategy-options.
std::span<const StrategyOptionInfo> asd_option_infos();

}  // namespace knap
